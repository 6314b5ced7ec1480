from base64 import b64decode

from heedful.experiments.claim import Claim
from heedful.experiments.outcome import Outcome, count_verdicts, read_outcome
from heedful.experiments.report import reproduction_page
from tests.render.pages import Page

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
    outcomes = [outcome("a", claims=CLAIMS, figures=("lines",)), outcome("b", part="toy tasks", failed="No <data>.")]
    html = reproduction_page(outcomes, tmp_path)
    page = Page(html)
    assert page.wrong == page.links == []
    for text in ("accuracy <b>", "82.22 %", "83.1 % [82.5, 83.6]", "Because & so.", "No <data>.", "3/2"):
        assert text in page.text
    assert page.count("b") == 0
    assert html.count('<span class="v agrees">') == 2  # in the legend and in the row
    assert count_verdicts(outcomes) == {"agrees": 1, "corrected": 1}
    images = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    assert [b64decode(image.partition(",")[2]) for image in images] == [(tmp_path / "a" / "lines.svg").read_bytes()]


def test_hostile_text_stays_text(tmp_path):
    bad = "<script>alert(1)</script> \" ' \x1b"
    claim = Claim(bad, bad, bad, "differs", bad)
    html = reproduction_page([outcome("a", title=bad, about=bad, source=bad, claims=(claim,), text=bad)], tmp_path)
    page = Page(html)
    assert page.wrong == []
    assert page.count("script") == 1
    assert "\x1b" not in html


def test_the_page_says_which_runs_are_quick(tmp_path):
    quick, full = outcome("a"), outcome("b", quick=False)
    texts = [Page(reproduction_page(outcomes, tmp_path)).text for outcomes in ([quick], [full], [quick, full])]
    assert "1 experiment, on cpu. All are quick runs" in texts[0]
    assert "All are full runs" in texts[1]
    assert "2 experiments, on cpu. 1 of them are quick runs" in texts[2]
