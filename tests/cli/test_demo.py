"""`heedful demo`: two texts, one page."""

from heedful.cli import demo
from heedful.experiments.paper.figure_1 import PAPERS


def test_both_texts_are_printed_and_written_on_one_page(heedful_command, monkeypatch, tiny, tmp_path):
    loaded = []
    monkeypatch.setattr(demo, "load_model", lambda name, _: loaded.append(name) or tiny)
    code, out, err = heedful_command("demo", "--out", tmp_path / "page.html")
    assert code == 0, err
    assert loaded == ["paper", "reviews"]
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    for heading in ("Figure 1 of the paper, on its model", "A review, on a small transformer"):
        assert heading in out
        assert f"<h2>{heading}</h2>" in html
    first = html.split("<section>")[1]
    assert all(f'<th scope="row">{name}</th>' in first for name in PAPERS)
    assert f"Wrote {tmp_path / 'page.html'}" in err
