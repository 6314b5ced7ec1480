"""Models of other packages come in, and explanations go out to them."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
import transformers as hf
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import heedful
from heedful.errors import BadInput, MissingPackage, Unsupported
from tests.families import TEXTS, build, network_of, pictures

REVIEWS = ["a good film", "good good plot", "a bad film", "bad dull plot", "so so plot", "so so film"]
SIDES = ["good", "good", "bad", "bad", "fair", "fair"]


@pytest.fixture(scope="module")
def shap():
    import matplotlib as mpl

    mpl.use("Agg")
    with warnings.catch_warnings():
        # shap warns of what it uses itself.
        warnings.simplefilter("ignore")
        import shap
    return shap


def fitted(estimator, sides=SIDES):
    return make_pipeline(TfidfVectorizer(), estimator).fit(REVIEWS[: len(sides)], sides)


def test_a_pipeline_of_scikit_learn_is_explained_by_its_probabilities():
    pipeline = fitted(LogisticRegression())
    model = heedful.wrap(pipeline, replacement="")
    assert model.classes == ("bad", "fair", "good")
    assert np.allclose(model(TEXTS), pipeline.predict_proba(TEXTS))
    explanation = heedful.explain(model, "a good plot", "leave-one-out", target="good")
    whole, *others = pipeline.predict_proba(["a good plot", " good plot", "a  plot", "a good "])[:, 2]
    assert np.allclose(explanation.scores, whole - np.array(others), atol=1e-12)
    assert explanation.notes == ()
    searched = GridSearchCV(fitted(LogisticRegression()), {"logisticregression__C": [1.0]}, cv=2).fit(REVIEWS, SIDES)
    assert np.allclose(heedful.wrap(searched)(TEXTS), pipeline.predict_proba(TEXTS))
    assert heedful.wrap(pipeline, classes=["x", "y", "z"]).classes == ("x", "y", "z")


def test_where_there_are_no_probabilities_distances_are_scores():
    two = fitted(LinearSVC(), SIDES[:4])
    model = heedful.wrap(two)
    assert model.classes == ("bad", "good")
    assert np.allclose(model(TEXTS), two.decision_function(TEXTS)[:, None] * [-1, 1])
    assert heedful.explain(model, "a good plot", "leave-one-out").target.name == two.predict(["a good plot"])[0]
    three = fitted(LinearSVC())
    assert np.allclose(heedful.wrap(three)(TEXTS), three.decision_function(TEXTS))


def test_an_estimator_that_takes_no_texts_is_one_sentence():
    counts = CountVectorizer().fit_transform(REVIEWS).toarray()
    with pytest.raises(
        BadInput, match=r"This LogisticRegression does not accept texts \(ValueError: .*\); wrap a pipeline"
    ):
        heedful.wrap(LogisticRegression().fit(counts, SIDES))
    with pytest.raises(BadInput, match="LinearRegression has neither predict_proba nor decision_function"):
        heedful.wrap(LinearRegression())
    for unfitted in (LogisticRegression(), make_pipeline(TfidfVectorizer(), LogisticRegression())):
        with pytest.raises(BadInput, match=r"^This \w+ is not fitted yet; fit it, then wrap it\.$"):
            heedful.wrap(unfitted)


def test_a_method_of_an_estimator_is_a_function():
    pipeline = make_pipeline(TfidfVectorizer(), LinearRegression()).fit(REVIEWS, np.arange(6.0))
    assert np.allclose(heedful.wrap(pipeline.predict)(TEXTS)[:, 0], pipeline.predict(TEXTS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "task"), [("bert", "text-classification"), ("gpt2", "text-generation"), ("llama", "text-generation")]
)
def test_a_pipeline_of_transformers_is_opened(family, task):
    network, tokenizer = network_of(family)
    model = heedful.wrap(hf.pipeline(task, model=network.eval(), tokenizer=tokenizer))
    direct = heedful.wrap(network.eval(), tokenizer)
    assert {"attention", "gradients", "layers", "masks"} <= model.offers
    for method in ("rollout", "gradient-l2"):
        ours, theirs = (heedful.explain(version, TEXTS[0], method) for version in (model, direct))
        assert ours.scores.tobytes() == theirs.scores.tobytes()


def test_a_classifying_pipeline_and_its_model_say_the_same():
    network, tokenizer = network_of("bert")
    pipeline = hf.pipeline("text-classification", model=network.eval(), tokenizer=tokenizer)
    logits = heedful.wrap(pipeline)(TEXTS)
    opened = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    asked = heedful.wrap(lambda texts: pipeline(texts, top_k=None))
    assert asked.classes == tuple(sorted(heedful.wrap(pipeline).classes))
    order = [heedful.wrap(pipeline).classes.index(name) for name in asked.classes]
    assert np.allclose(asked(TEXTS), opened[:, order], atol=1e-6)


def test_a_pipeline_of_pictures_is_opened():
    model = build("vit")
    pipeline = hf.pipeline("image-classification", model=model.network, image_processor=model.processor)
    picture = pictures()[0]
    assert heedful.wrap(pipeline)([picture]).tobytes() == model([picture]).tobytes()


def test_translating_pipelines_of_older_transformers_are_opened():
    network, tokenizer = network_of("marian")

    class Pipeline:
        def __init__(self, task):
            self.task, self.model, self.tokenizer, self.image_processor = task, network.eval(), tokenizer, None

    Pipeline.__module__ = "transformers.pipelines.base"
    direct = heedful.wrap(network.eval(), tokenizer)
    for task in ("translation_en_to_de", "summarization", "text2text-generation"):
        assert heedful.wrap(Pipeline(task))(["good film"]).tobytes() == direct(["good film"]).tobytes()
    with pytest.raises(Unsupported, match="A pipeline for zero-shot-classification changes its model's output"):
        heedful.wrap(Pipeline("zero-shot-classification"))


LAZY = """
import sys, heedful
heedful.wrap(lambda texts: [[1.0]] * len(texts))
explanation = heedful.explain(heedful.load("paper"), "a good film", "leave-one-out")
explanation.as_list()
print([name for name in ("sklearn", "transformers", "shap", "pandas", "matplotlib") if name in sys.modules])
"""


@pytest.mark.slow
def test_no_other_package_is_imported_before_it_is_needed():
    run = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr


def test_the_list_is_lime_s(tiny):
    explanation = heedful.explain(tiny, "good film was good but dull", "lime", n_samples=100)
    listed = explanation.as_list()
    assert sorted(listed) == sorted(zip(explanation.units, explanation.scores.tolist(), strict=True))
    assert [abs(weight) for _, weight in listed] == sorted((abs(weight) for _, weight in listed), reverse=True)


@pytest.mark.slow
def test_shapley_values_start_at_the_empty_text(tiny, shap):
    text = "good film was  good, dull"
    explanation = heedful.explain(tiny, text, "shapley-exact", target=1)
    theirs = explanation.to_shap()
    assert isinstance(theirs, shap.Explanation)
    assert theirs.values.tolist() == explanation.scores.tolist()
    assert theirs.base_values == pytest.approx(explanation.facts["empty"], abs=1e-9)
    assert "".join(theirs.data) == text
    assert list(theirs.feature_names) == list(explanation.units)
    assert theirs.output_names == "the logit of positive"
    assert np.allclose(theirs.upper_bounds - theirs.lower_bounds, 2 * explanation.error)
    other = heedful.explain(tiny, text, "leave-one-out", target=1)
    assert other.to_shap().base_values == pytest.approx(other.output - other.scores.sum(), abs=1e-12)


def test_a_line_starts_at_its_intercept(tiny):
    explanation = heedful.explain(tiny, "good film was dull", "lime", n_samples=100)
    assert explanation.to_shap().base_values == explanation.facts["intercept"]


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["token", "word", "type", "sentence"])
@pytest.mark.parametrize("method", ["shapley-sampled", "gradient-l2"])
def test_shap_draws_our_explanations(shap, method, unit):
    import matplotlib.pyplot as plt

    model = build("bert")
    explanation = heedful.explain(model, "a good unbelievable film . not a good plot !", method, unit=unit)
    theirs = explanation.to_shap()
    with warnings.catch_warnings():
        # shap draws with what matplotlib has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        shap.plots.bar(theirs, show=False)
        labels = {label.get_text() for label in plt.gca().get_yticklabels()}
        plt.close("all")
        shap.plots.waterfall(theirs, show=False)
        plt.close("all")
        page = shap.plots.text(theirs, display=False)
    strongest = explanation.top(1)[0][0]
    assert any(strongest in label for label in labels)
    assert strongest in page.replace("<br>", " ")
    assert len(theirs.data) == len(explanation.units)


def test_shap_draws_our_pictures(shap):
    import matplotlib.pyplot as plt

    picture = pictures()[0]
    explanation = heedful.explain(build("vit"), picture, "leave-one-out")
    theirs = explanation.to_shap()
    assert theirs.values.shape == (1, 4, 4, 1, 1)
    assert theirs.values[0, 1, 2, 0, 0] == explanation.scores[6]
    rgb = explanation.document.picture.rgb
    side = len(rgb) // 4
    assert np.abs(theirs.data[0, 1, 2] - rgb[side : 2 * side, 2 * side : 3 * side].mean(axis=(0, 1))).max() <= 0.5
    shap.image_plot(theirs, show=False)
    plt.close("all")


def test_without_shap_there_is_a_sentence(tiny, monkeypatch):
    explanation = heedful.explain(tiny, "good film", "leave-one-out")
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(MissingPackage, match="to_shap needs the package shap"):
        explanation.to_shap()


ONE = "a good plot"


def on_scales(model, text, target):
    """The outputs on both scales of probability."""
    return [
        heedful.explain(model, text, "leave-one-out", target=target, scale=scale).output
        for scale in ("log-probability", "probability")
    ]


def test_probabilities_of_scikit_learn_are_its_own_on_every_scale():
    for sides in (SIDES, SIDES[:4]):
        pipeline = fitted(LogisticRegression(), sides)
        model = heedful.wrap(pipeline, replacement="")
        assert "probabilities of" in repr(model)
        for index in range(len(pipeline.classes_)):
            expected = [pipeline.predict_log_proba([ONE])[0, index], pipeline.predict_proba([ONE])[0, index]]
            assert on_scales(model, ONE, index) == pytest.approx(expected, abs=1e-9)
        plain = heedful.explain(model, ONE, "leave-one-out", target="good")
        assert str(plain.target) == "the probability of good"
        assert plain.output == pytest.approx(pipeline.predict_proba([ONE])[0, list(pipeline.classes_).index("good")])
        without = pipeline.predict_log_proba([" good plot", "a  plot", "a good "])[:, 0]
        logs = heedful.explain(model, ONE, "leave-one-out", target=0, scale="log-probability")
        assert np.allclose(logs.scores, pipeline.predict_log_proba([ONE])[0, 0] - without, atol=1e-9)


def test_a_decision_value_has_no_probability_unless_the_user_says_so():
    machine = fitted(LinearSVC())
    model = heedful.wrap(machine)
    assert "scores of" in repr(model)
    assert str(heedful.explain(model, ONE, "leave-one-out", target="good").target) == "the score of good"
    with pytest.raises(Unsupported, match="not known whether this model returns logits"):
        heedful.explain(model, ONE, "leave-one-out", scale="log-probability")
    logits = heedful.wrap(machine, returns="logits")
    expected = torch.log_softmax(torch.from_numpy(machine.decision_function([ONE])), dim=1)[0, 2].item()
    assert on_scales(logits, ONE, 2) == pytest.approx([expected, np.exp(expected)], abs=1e-9)


@pytest.mark.parametrize("problem", ["single_label_classification", "multi_label_classification", None])
def test_probabilities_of_a_transformers_pipeline_are_its_own(problem):
    network, tokenizer = network_of("bert")
    network.config.problem_type = problem
    pipeline = hf.pipeline("text-classification", model=network.double().eval(), tokenizer=tokenizer, top_k=None)
    opened, as_function = heedful.wrap(pipeline), heedful.wrap(lambda texts: pipeline(texts), returns="probabilities")
    own = {row["label"]: row["score"] for row in pipeline([TEXTS[0]])[0]}
    with torch.no_grad():
        logits = network(**tokenizer(TEXTS[0], return_tensors="pt")).logits[0]
    log_p = torch.nn.functional.logsigmoid(logits) if problem == "multi_label_classification" else logits.log_softmax(0)
    for index, label in network.config.id2label.items():
        exact = [log_p[index].item(), log_p[index].exp().item()]
        assert on_scales(opened, TEXTS[0], label) == pytest.approx(exact, abs=1e-9)
        # The pipeline itself computes in single precision.
        assert on_scales(opened, TEXTS[0], label) == pytest.approx([np.log(own[label]), own[label]], abs=1e-6)
        assert on_scales(as_function, TEXTS[0], label) == pytest.approx([np.log(own[label]), own[label]], abs=1e-9)


def test_the_function_that_a_pipeline_applies_is_used():
    network, tokenizer = network_of("bert")
    for applied, returns in (("sigmoid", "independent-logits"), ("softmax", "logits")):
        pipeline = hf.pipeline("text-classification", model=network, tokenizer=tokenizer, function_to_apply=applied)
        assert heedful.wrap(pipeline).returns == returns
        assert heedful.wrap(pipeline, returns="scores").returns == "scores"
