"""`heedful compare` as a user types it."""

import json

import pytest

SENTENCE = "attention based explanations are popular but questionable"


@pytest.mark.slow
def test_compare_writes_every_kind_of_report(heedful_command, tmp_path):
    for ending in ("html", "json", "png", "svg", "pdf"):
        path = tmp_path / f"report.{ending}"
        code, _, err = heedful_command(
            "compare", SENTENCE, "--methods=leave-one-out,attention-mean", "--out", str(path)
        )
        assert code == 0, err
        assert path.stat().st_size > 5_000
        assert f"Wrote {path}" in err


def test_only_the_methods_that_were_named_are_run(heedful_command):
    code, out, _ = heedful_command("compare", SENTENCE, "--methods", "lime, leave-one-out", "--n-samples", 50, "--json")
    assert code == 0
    explanations = json.loads(out)["explanations"]
    assert [explanation["method"] for explanation in explanations] == ["lime", "leave-one-out"]
    assert explanations[0]["settings"]["n_samples"] == 50


def test_two_models_are_compared_side_by_side(heedful_command, tmp_path, tiny):
    tiny.save(tmp_path / "tiny.safetensors", {})
    given = ("compare", "a good film", "--methods", "leave-one-out", "--model", "paper")
    code, out, _ = heedful_command(*given, "--model", tmp_path / "tiny.safetensors", "--json")
    assert code == 0
    both = json.loads(out)
    assert list(both) == ["paper", "tiny.safetensors"]
    _, alone, _ = heedful_command(*given, "--json")
    assert both["paper"]["explanations"][0]["scores"] == json.loads(alone)["explanations"][0]["scores"]
    code, _, _ = heedful_command(*given, "--model", tmp_path / "tiny.safetensors", "--out", tmp_path / "both.html")
    assert code == 0
    assert "tiny.safetensors" in (tmp_path / "both.html").read_text(encoding="utf-8")


def test_one_row_of_a_table_is_compared(heedful_command, tmp_path):
    (tmp_path / "c.csv").write_text("comment\na fine film\na dull story\n")
    code, out, err = heedful_command("compare", tmp_path / "c.csv", "--methods", "attention-mean")
    assert (code, out, err) == (2, "", "heedful: c.csv has 2 texts; compare explains one: add --row 1.\n")
    code, out, _ = heedful_command("compare", tmp_path / "c.csv", "--row", "1", "--methods", "attention-mean", "--json")
    assert json.loads(out)["explanations"][0]["document"]["text"] == "a dull story"
