from importlib import import_module

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import heedful
from heedful.errors import BadInput
from heedful.models.hf.sentence import SentenceClassifier
from tests.families import CORPUS, TEXTS, loud, network_of

sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    """A tiny SentenceTransformer: encoder, mean pooling, vectors of length one."""
    folder = tmp_path_factory.mktemp("encoder")
    network, tokenizer = network_of("bert")
    torch.manual_seed(0)
    loud(network).bert.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    modules = import_module("sentence_transformers.sentence_transformer.modules")
    encoder = modules.Transformer(str(folder))
    return sentence_transformers.SentenceTransformer(
        modules=[encoder, modules.Pooling(16), modules.Normalize()], device="cpu"
    )


def fitted(classifier, sentences, n_classes=2):
    texts = [*CORPUS[:4], *TEXTS]
    labels = [("bad", "good", "odd")[n % n_classes] for n in range(len(texts))]
    return classifier.fit(sentences.encode(texts), labels)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_linear_classifier_keeps_its_outputs_and_gains_attention_and_gradients(sentences, n_classes, scaled):
    head = LogisticRegression(C=10)
    head = fitted(make_pipeline(StandardScaler(), head) if scaled else head, sentences, n_classes)
    model = heedful.wrap(sentences, head=head)
    assert {"attention", "gradients", "masks"} <= model.offers
    outputs, vectors = model(TEXTS), sentences.encode(TEXTS)
    decisions = head.decision_function(vectors)
    assert np.allclose(outputs if n_classes == 3 else outputs[:, 1], decisions, atol=1e-5)
    assert model.returns == ("logits" if n_classes == 3 else "independent-logits")
    probabilities = softmax(outputs, axis=1) if n_classes == 3 else expit(outputs)
    assert np.allclose(probabilities, head.predict_proba(vectors), atol=1e-5)
    assert model.classes == tuple(head.classes_)
    explanation = heedful.explain(
        model, TEXTS[1], "leave-one-out", target="good", scale="probability", absence="delete"
    )
    assert explanation.units[3] == "unbelievable"
    without = head.predict_proba(sentences.encode([TEXTS[1].replace("unbelievable ", "")]))[0, 1]
    assert explanation.output - explanation.scores[3] == pytest.approx(without, abs=1e-5)


def test_gradients_go_through_pooling_norm_and_head(sentences):
    head = fitted(LogisticRegression(), sentences)
    model = heedful.wrap(sentences, head=head)
    encoder = model.network.encoder
    ids = sentences.tokenizer(TEXTS[1], return_tensors="pt")
    e = encoder.get_input_embeddings()(ids["input_ids"]).detach().requires_grad_()
    pooled = encoder(inputs_embeds=e, attention_mask=ids["attention_mask"]).last_hidden_state.mean(dim=1)
    value = nn.functional.normalize(pooled)[0] @ torch.from_numpy(head.coef_[0]).float()
    (gradient,) = torch.autograd.grad(value, e)
    scores = heedful.explain(model, TEXTS[1], "gradient-l1", target="good", unit="token").scores
    assert np.allclose(scores, gradient[0, 1:-1].abs().sum(dim=-1), rtol=1e-3, atol=1e-6)


def test_a_classifier_without_probabilities_returns_scores(sentences):
    head = fitted(RidgeClassifier(), sentences)
    model = heedful.wrap(sentences, head=head)
    assert model.returns == "scores"
    assert np.allclose(model(TEXTS)[:, 1], head.decision_function(sentences.encode(TEXTS)), atol=1e-5)


def test_other_classifiers_and_encoders_with_prompts_are_black_boxes(sentences):
    forest = fitted(RandomForestClassifier(5, random_state=0), sentences)
    box = heedful.wrap(sentences, head=forest)
    assert np.allclose(box(TEXTS), forest.predict_proba(sentences.encode(TEXTS)))
    assert "SentenceTransformer with RandomForestClassifier; returns probabilities" in repr(box)
    assert "no attention, no gradients: RandomForestClassifier is not linear" in repr(box)
    linear = fitted(LogisticRegression(), sentences)
    sentences.prompts["query"], sentences.default_prompt_name = "a dull plot ", "query"
    try:
        prompted = heedful.wrap(sentences, head=linear)
        assert np.allclose(prompted(TEXTS), linear.predict_proba(sentences.encode(TEXTS)))
    finally:
        sentences.default_prompt_name = None
    assert prompted.offers == {"masks"}
    assert "more than its modules" in repr(prompted)


def test_probabilities_that_are_asked_for_are_those_of_the_classifier(sentences):
    head = fitted(LogisticRegression(C=10), sentences)
    model = heedful.wrap(sentences, head=head, returns="probabilities")
    assert np.allclose(model(TEXTS), head.predict_proba(sentences.encode(TEXTS)))
    assert "returns independent-logits, not probabilities" in model.withheld["gradients"]


def test_attention_is_withheld_where_vectors_are_maxima(sentences):
    modules = import_module("sentence_transformers.sentence_transformer.modules")
    most = sentence_transformers.SentenceTransformer(
        modules=[sentences[0], modules.Pooling(16, pooling_mode="max")], device="cpu"
    )
    model = heedful.wrap(most, head=fitted(LogisticRegression(), most))
    assert model.offers == {"gradients", "masks"}


def test_a_torch_head_is_part_of_the_module(sentences):
    torch.manual_seed(0)
    head = nn.Linear(16, 3)
    model = heedful.wrap(sentences, head=head, classes=["a", "b", "c"])
    with torch.no_grad():
        expected = head(torch.from_numpy(sentences.encode(TEXTS)))
    assert np.allclose(model(TEXTS), expected, atol=1e-5)
    assert isinstance(model.network.module, SentenceClassifier)


def test_a_missing_or_misplaced_head_is_an_error(sentences):
    with pytest.raises(BadInput, match=r"heedful\.wrap\(model, head=classifier\)"):
        heedful.wrap(sentences)
    with pytest.raises(BadInput, match="not fitted"):
        heedful.wrap(sentences, head=LogisticRegression())
    with pytest.raises(BadInput, match="goes with a SentenceTransformer"):
        heedful.wrap(nn.Linear(2, 2), head=LogisticRegression())
