import numpy as np
import pytest

from heedful.experiments.variant_tests import summary_sentence, variant_claims, variant_figure, variant_tests

MEASURES = ("α ~ G-l1", "α ~ G-avg", "LIME ~ G×I", "LIME ~ IG", "|LIME| ~ α", "LIME ~ α")


def rows(variant: str, **means: float) -> list[dict]:
    """Eight documents whose measures are spread a little about their means."""
    spread = np.linspace(-0.05, 0.05, 8)
    return [
        {"variant": variant, "document": n, "predicted": 1, "measure": m, "kind": kind, "value": means[name] + off}
        for m, name in zip(MEASURES, ("l1", "avg", "gxi", "ig", "size", "alpha"), strict=True)
        for kind in ("pearson", "spearman")
        for n, off in enumerate(spread.tolist())
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
        {**row, "value": row["document"] / 8 + (0.02 if row["measure"] == "LIME ~ G×I" else 0.0)}
        for row in rows("wide", l1=0.8, avg=0.0, gxi=0.0, ig=0.0, size=0.0, alpha=0.0)
    ]
    (one,) = variant_tests(wide)
    assert one.nearer.low > 0.0199


def test_a_difference_within_the_interval_is_reported_as_none():
    (one,) = variant_tests(EVEN)
    assert one.because == "G×I is not significantly nearer to LIME than α"


def test_the_sentence_names_what_survives_and_what_does_not():
    some = summary_sentence(variant_tests([*KEPT, *BLIND]), quick=False)
    assert some.startswith("The single-layer results hold with kept, but not with blind (α does not follow G-l1).")
    assert "with G-l1 is 0.80 at best (kept) and 0.00 at worst (blind)" in some
    assert "everywhere" in summary_sentence(
        variant_tests([*KEPT, *rows("too", l1=1, avg=1, gxi=1, ig=1, size=0, alpha=0)]), False
    )
    assert "nowhere" in summary_sentence(variant_tests([*BLIND, *TURNED]), False)
    assert summary_sentence(variant_tests(BLIND), False).startswith("The single-layer results do not hold: α does not")
    assert "tiny models on synthetic texts" in summary_sentence(variant_tests(KEPT), quick=True)


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
