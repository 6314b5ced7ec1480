from dataclasses import asdict

import pytest

from heedful.evaluation.standing import CONTROL, Standing, Verdict


def verdict(as_good, behind=(), costs=None):
    """A verdict in which the names with a "!" do not beat the control, and those `behind` are worse than the best."""
    names = [name.rstrip("!") for name in (*as_good, *behind)]
    standings = [
        Standing(name, 0.8, 0.7, 0.9, 0.3, 0.5 if f"{name}!" in as_good else 0.001, 1.0, (costs or {}).get(name, 1.0))
        for name in names
    ]
    control = Standing(CONTROL, 0.5, 0.4, 0.6, 0.0, 1.0, 0.001, 0.0)
    good = tuple(name.rstrip("!") for name in as_good)
    return Verdict("rank words", ("deletion",), (*standings, control), good[0] if good else None, good)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (verdict([]), "no significant winner; no method is shown to beat the random control."),
        (verdict(["a"], ["b"]), "use a; it beats the random control and every other method."),
        (verdict(["a"]), "use a; it beats the random control."),
        (
            verdict(["a", "b!"]),
            "use a; it beats the random control; undecided: b, "
            "shown to be neither worse than it nor better than random.",
        ),
        (verdict(["a", "b"], ["c"]), "a and b are not distinguishable; both beat the random control."),
        (
            verdict(["a", "b", "c", "d", "e"], ["f"], {"d": 0.5}),
            "five of six methods are not distinguishable from the best; no single recommendation: a, b, c, d and e "
            "beat the random control; d costs least.",
        ),
        (
            verdict([f"m{number}" for number in range(21)], ["last"]),
            "21 of 22 methods are not distinguishable from the best; no single recommendation: m0, m1, m2, m3, m4, m5 "
            "and 15 more beat the random control.",
        ),
    ],
)
def test_a_method_is_named_alone_only_if_it_is_distinguishable_from_the_others(given, sentence):
    assert given.sentence == sentence
    assert given.as_dict() == {**asdict(given), "standings": [asdict(s) for s in given.standings], "sentence": sentence}


def test_the_best_keeps_its_field_though_it_is_not_named():
    given = verdict(["a", "b", "c"])
    assert (given.recommended, given.equals) == ("a", ("a", "b", "c"))
