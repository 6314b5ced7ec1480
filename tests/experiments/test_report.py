import re
from html.parser import HTMLParser

from heedful.experiments.claim import Claim
from heedful.experiments.outcome import Outcome, count_verdicts, read_outcome
from heedful.experiments.report import reproduction_page

CLAIMS = (
    Claim("accuracy <b>", "82.22 %", "83.1 % [82.5, 83.6]", "agrees", "Because & so."),
    Claim("constant", "3/2", "1.01", "corrected", "The proof drops a term."),
)


def outcome(name, **changes):
    facts = {"name": name, "part": "paper", "title": f"Title of {name}", "source": "Figure 9", "about": "What it is."}
    return Outcome(**{**facts, "quick": True, "device": "cpu", "seconds": 1.5, **changes})


def test_an_outcome_comes_back_from_its_folder(tmp_path):
    one = outcome("a", claims=CLAIMS, figures=("lines",), tables={"rows": 3})
    one.write(tmp_path)
    assert read_outcome(tmp_path) == one
    assert read_outcome(tmp_path / "other") is None


def test_the_page_holds_every_claim_and_fetches_nothing(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "lines.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", encoding="utf-8")
    ones = [outcome("a", claims=CLAIMS, figures=("lines",)), outcome("b", part="toy tasks", failed="No <data>.")]
    page = reproduction_page(ones, tmp_path)
    HTMLParser().feed(page)
    text = re.sub(r"<[^>]+>", " ", page)
    for said in (
        "accuracy &lt;b&gt;",
        "82.22 %",
        "83.1 % [82.5, 83.6]",
        "Because &amp; so.",
        "No &lt;data&gt;.",
        "3/2",
    ):
        assert said in text
    assert page.count('<span class="v agrees">') == 2  # in the legend and in the row
    assert re.findall(r'(?:src|href)="(?!data:|#)', page) == []
    assert count_verdicts(ones) == {"agrees": 1, "corrected": 1}
