"""Which texts ROAR trains and tests on, and which models there are."""

import pytest

from heedful.errors import BadInput, UnknownName
from heedful.evaluation.roar_plan import RoarCase, RoarPlan, read_data
from tests.planted import EXAMPLES, SPLITS, Planted


def plan(**changes):
    settings = {"methods": ["lime"], "shares": (0.5,), "mode": "both", "imputation": "unknown", "seeds": 1}
    return RoarPlan(**settings | {"workers": 1, "settings": {}} | changes)


def read(data, test=None, n=None, text=None, label=None, validates=False, classes=()):
    return read_data(data, test, n, text, label, validates, classes)


def test_a_data_set_has_its_own_splits():
    data = read(Planted(), validates=True)
    for split in SPLITS:
        assert data.texts[split] == tuple(example.text for example in EXAMPLES[split])
        assert data.labels[split].tolist() == [example.label for example in EXAMPLES[split]]
    assert (data.name, data.classes, set(read(Planted()).texts)) == ("planted", Planted.classes, {"train", "test"})
    assert [len(part) for part in read(Planted(), n=7, validates=True).texts.values()] == [7, 7, 7]


def test_of_a_user_s_texts_a_fifth_is_held_out_with_all_its_copies():
    texts = [f"text {number}" for number in range(50)] * 2
    labels = [number % 3 for number in range(50)] * 2
    data = read(texts, label=labels, validates=True)
    assert len(data.texts["test"]) == 20
    assert len(data.texts["validation"]) == 16
    parts = [set(part) for part in data.texts.values()]
    assert set.union(*parts) == set(texts)
    assert sum(map(len, parts)) == 50
    pairs = [(data.texts[split], data.labels[split].tolist()) for split in data.texts]
    own = {text: label for pair in pairs for text, label in zip(*pair, strict=True)}
    assert own == dict(zip(texts, labels, strict=True))
    given = read([("a", 0), ("b", 1)], test=[("c", 1)])
    assert (given.texts["train"], given.texts["test"]) == (("a", "b"), ("c",))


def test_labels_are_numbered_in_their_order_or_as_the_model_has_its_classes():
    rows = [{"text": f"t {n}", "label": name} for n, name in enumerate(["10", "9", "2", "9"] * 5)]
    pd = pytest.importorskip("pandas", reason="a table of texts")
    frame = pd.DataFrame(rows)
    assert read(frame).classes == ("2", "9", "10")
    names = pd.DataFrame([{"text": f"t {n}", "label": ["good", "bad"][n % 2]} for n in range(20)])
    assert read(names).classes == ("bad", "good")
    assert read(names, classes=("good", "bad")).labels["train"][0] == int(read(names).texts["train"][0][2:]) % 2


def test_texts_that_cannot_be_used_are_refused():
    with pytest.raises(BadInput, match="row 1: ROAR needs a label for every text; add one, or leave it out"):
        read(["one", "two", "three"])
    with pytest.raises(BadInput, match="ROAR trains classifiers; give texts of at least two classes"):
        read(["one", "two", "three"], label=[1, 1, 1])
    with pytest.raises(BadInput, match="only one class is left to train on; give more different texts"):
        read(["one", "two"], label=[0, 1])
    with pytest.raises(BadInput, match="row 2: ROAR replaces words of a text; got 7"):
        read(["one", 7, "three"], test=["x"], label=[0, 1, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shares": (0.1, 1.5)}, "shares must be numbers from 0 to 1"),
        ({"shares": ()}, "shares must be numbers from 0 to 1"),
        ({"seeds": 0}, "seeds must be a whole number of at least 1; 0 was given"),
        ({"mode": "drop"}, "no mode 'drop'"),
        ({"imputation": "zero"}, "no imputation 'zero'"),
        ({"imputation": "replace:"}, "no imputation 'replace:'"),
        ({"methods": ["lime-exakt"]}, "no method 'lime-exakt'; did you mean 'lime-exact'"),
        ({"settings": {"n_sample": 5}}, "no setting 'n_sample'; did you mean 'n_samples'"),
        ({"settings": {"unit": "token"}}, "ROAR replaces words; leave `unit` out"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(change, message):
    with pytest.raises((BadInput, UnknownName), match=message):
        plan(**change)


def test_one_model_serves_all_curves_where_no_word_or_every_word_is_replaced():
    own = plan(shares=(1, 0.5, 0.25))
    assert own.names("lime") == ("random", "lime")
    cases = own.cases(("random", "lime"), 3)
    assert len(cases) == 2 * 2 * 4
    assert len(set(cases.values())) == 2 + 2 * 2 * 2
    assert cases["keep", "lime", 0.25] == RoarCase("lime", "keep", 0.25, 3)
    assert {case.key for case in cases.values()} >= {"0-3", "1-3", "keep-lime-0.25-3"}
    assert own.explainers(["lime"])["lime"].unit == "word"
