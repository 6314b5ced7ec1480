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
