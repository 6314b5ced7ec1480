import numpy as np
import pytest

from heedful.experiments.variant_tests import summary_sentence, variant_claims, variant_figure, variant_tests

MEASURES = ("α ~ G-l1", "α ~ G-avg", "LIME ~ G×I", "LIME ~ IG", "|LIME| ~ α", "LIME ~ α")


def rows(variant: str, **means: float) -> list[dict]:
    """Eight documents whose measures are spread a little about their means."""
    spread = np.linspace(-0.05, 0.05, 8)
    return [
        {"variant": variant, "document": n, "predicted": 1, "measure": m, "kind": kind, "value": means[name] + off}
        for turn, (m, name) in enumerate(zip(MEASURES, ("l1", "avg", "gxi", "ig", "size", "alpha"), strict=True))
        for kind in ("pearson", "spearman")
        # Turned, so that differences of two measures vary too.
        for n, off in enumerate(np.roll(spread, turn).tolist())
    ]


KEPT = rows("kept", l1=0.8, avg=0.1, gxi=0.9, ig=0.9, size=0.7, alpha=0.3)
BLIND = rows("blind", l1=0.0, avg=0.0, gxi=0.9, ig=0.9, size=0.7, alpha=0.3)
TURNED = rows("turned", l1=0.8, avg=0.0, gxi=-0.5, ig=0.9, size=0.7, alpha=0.3)
EVEN = rows("even", l1=0.8, avg=0.0, gxi=0.3, ig=0.3, size=0.7, alpha=0.3)


def models(*names: str) -> list[dict]:
    return [{"variant": name, "quick": False, "n_train": 90, "n_test": 400, "n_right": 340} for name in names]


def test_a_variant_survives_only_with_both():
    tests_by_variant = {test.variant: test for test in variant_tests([*KEPT, *BLIND, *TURNED])}
    assert [test.survives for test in tests_by_variant.values()] == [True, False, False]
    assert tests_by_variant["kept"].because == ""
    assert tests_by_variant["blind"].because == "α does not follow G-l1"
    assert tests_by_variant["turned"].because == "α is nearer to LIME than G×I, though integrated gradients are nearer"
    assert tests_by_variant["kept"].follows.value == pytest.approx(0.8)
    assert tests_by_variant["kept"].nearer.value == pytest.approx(0.6)
    assert tests_by_variant["turned"].by_path.value == pytest.approx(0.6)
    assert tests_by_variant["kept"].spared.value == pytest.approx(0.7)


def test_differences_are_paired_by_document():
    """G×I is always a little nearer, though documents differ by far more: unpaired it would not be seen."""
    wide = [
        {
            **row,
            "value": row["document"] / 8 + ((0.02 + row["document"] / 1e4) if row["measure"] == "LIME ~ G×I" else 0),
        }
        for row in rows("wide", l1=0.8, avg=0.0, gxi=0.0, ig=0.0, size=0.0, alpha=0.0)
    ]
    (one,) = variant_tests(wide)
    assert 0.0199 < one.nearer.low < one.nearer.high < 0.021


def test_a_difference_within_the_interval_is_reported_as_none():
    (one,) = variant_tests(EVEN)
    assert one.because == "G×I is not significantly nearer to LIME than α"


def test_the_sentence_names_what_survives_and_what_does_not():
    some = summary_sentence(variant_tests([*KEPT, *BLIND]))
    assert some.startswith("The single-layer results hold with kept, but not with blind (α does not follow G-l1).")
    assert "with G-l1 is 0.80 at best (kept) and 0.00 at worst (blind)" in some
    assert "everywhere" in summary_sentence(
        variant_tests([*KEPT, *rows("too", l1=1, avg=1, gxi=1, ig=1, size=0, alpha=0)])
    )
    assert "nowhere" in summary_sentence(variant_tests([*BLIND, *TURNED]))
    assert summary_sentence(variant_tests(BLIND)).startswith("The single-layer results do not hold: α does not")


def test_all_or_none_are_not_called_only_some():
    """“and only 3 of 3 keep a correlation”, it said."""
    signed = [rows(name, l1=0.8, avg=0.5, gxi=0.9, ig=0.9, size=0.7, alpha=0.3) for name in "abc"]
    unsigned = [rows(name, l1=0.8, avg=-0.5, gxi=0.9, ig=0.9, size=0.7, alpha=0.3) for name in "de"]
    for chosen, words in (
        (signed, "and all keep a correlation with G-avg above 0"),
        (signed + unsigned, "and only 3 of 5 keep a correlation"),
        (unsigned, "and none keeps a correlation"),
    ):
        assert words in summary_sentence(variant_tests([row for part in chosen for row in part]))


def test_tiny_models_and_few_documents_decide_nothing():
    quick = [{**model, "quick": True} for model in models("kept", "turned")]
    first, *each = variant_claims({"documents": [*KEPT, *TURNED], "models": quick}, "does it?")
    assert (first.verdict, first.ours) == ("not measured", "")
    assert "Tiny models on synthetic texts cannot decide it" in first.why
    assert {claim.verdict for claim in each} == {"not measured"}
    few = [row for row in KEPT if row["document"] < 4]
    (one,) = variant_tests(few)
    assert not one.survives
    assert one.because == "there are too few documents to decide"


def test_claims_are_the_sentence_and_every_variant():
    numbers = {"documents": [*KEPT, *TURNED], "models": models("kept", "turned")}
    first, kept, turned = variant_claims(numbers, "does it?")
    assert (first.what, first.ours) == ("does it?", "1 of 2 variants")
    assert "85.0%" in kept.why
    assert "both are above 0" in kept.why
    assert "α is nearer to LIME" in turned.why
    assert kept.ours.startswith("0.800 [")


def test_the_figure_shows_means_intervals_and_documents():
    numbers = {"documents": [*KEPT, *TURNED], "models": models("kept", "turned")}
    upper, lower = variant_figure(numbers).axes
    assert [text.get_text() for text in upper.get_legend().get_texts()] == ["α ~ G-l1", "α ~ G-avg"]
    bars = {bar.get_label(): bar for bar in lower.containers}
    assert set(bars) == {"LIME ~ G×I", "LIME ~ IG", "|LIME| ~ α", "LIME ~ α"}
    middle, _, (arms,) = bars["LIME ~ G×I"]
    assert middle.get_ydata() == pytest.approx([0.9, -0.5])
    tests_by_variant = {test.variant: test for test in variant_tests(numbers["documents"])}
    ends = [segment[:, 1] for segment in upper.containers[0][2][0].get_segments()]
    assert np.array(ends) == pytest.approx(
        np.array(
            [[tests_by_variant[name].follows.low, tests_by_variant[name].follows.high] for name in ("kept", "turned")]
        )
    )
    assert len(arms.get_segments()) == 2
    dots = [line for line in upper.lines if line.get_alpha() == 0.15]
    assert dots[0].get_ydata() == pytest.approx(np.linspace(-0.05, 0.05, 8) + 0.8)
    assert [label.get_text() for label in lower.get_xticklabels()] == ["kept\n85.0% right", "turned\n85.0% right"]
