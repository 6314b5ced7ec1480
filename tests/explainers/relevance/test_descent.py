import torch

from heedful.explainers.relevance.descent import descend, is_too_large, target_slope
from heedful.models.question import ask
from heedful.models.target_gradient import target_values
from tests.families import build, texts_for


def test_without_other_rules_it_is_gradient_times_input_and_visits_the_last_layer_first():
    question, seen = ask(build("bert"), texts_for("bert")), []
    products = descend(
        question,
        question.documents,
        lambda logits: target_slope(question, logits),
        False,
        visit=lambda _, call, gradient: seen.append((call, gradient)),
    )
    e, gradient, _ = question.gradient
    assert torch.allclose(products, torch.from_numpy(e * gradient), atol=1e-12)
    modules = [call.module for call in question.recording.calls]
    assert [call.module for call, _ in seen] == modules[::-1]
    assert all(gradient.shape == call.output().shape for call, gradient in seen)


def test_the_slope_is_that_of_every_target_and_the_logits_are_learnt():
    question = ask(build("bert"), texts_for("bert"), target="good", scale="probability")
    logits = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    truth = torch.func.jacrev(lambda row: target_values(question.targets, row).sum())(question_logits(question))
    assert torch.allclose(target_slope(question, question_logits(question)), truth)
    assert question.logits.shape == logits.shape


def question_logits(question):
    return torch.from_numpy(question.logits).clone()


def test_small_texts_fit_in_memory(monkeypatch):
    question = ask(build("bert"), texts_for("bert"))
    assert not is_too_large(question)
    monkeypatch.setattr("heedful.explainers.relevance.descent.PASS_MEMORY", 1)
    assert is_too_large(question)
