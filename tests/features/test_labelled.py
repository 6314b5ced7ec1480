import re
from typing import Any

import numpy as np
import pytest
import torch

from heedful.document import SPECIAL
from heedful.errors import BadInput
from heedful.features.labelled import Label, label_of, raised_label, repetition
from tests import families
from tests.features.random_dictionaries import random_dictionary
from tests.models.language.test_writer import writer


def build(family) -> Any:
    return families.build(family)


TEXT = "Happy, unhappy and HAPPY! It's the happy-go-lucky; happily glad."


def test_the_share_is_that_of_a_regular_expression_at_word_boundaries():
    label = Label(("happy", "glad"), (1,))
    by_regex = len(re.findall(r"(?i)\b(happy|glad)\b", TEXT))
    assert by_regex == 4
    assert label.share(TEXT) == pytest.approx(by_regex / 11)
    assert label.share("... !") == label.share("") == 0
    assert Label(("it's",), (1,)).share("It's so") == 0.5


def test_repetition_is_one_minus_the_share_of_distinct_pairs():
    assert repetition("a b a b a") == pytest.approx(1 - 2 / 4)
    assert repetition("one two three") == 0
    assert repetition("one") is None


def test_tokens_of_a_word_are_those_with_a_space_whatever_their_case():
    model = build("gpt2")
    label = label_of(model, ["Plot", "good", "zebra"])
    assert label.words == ("plot", "good", "zebra")
    assert label.lost == ("zebra",)
    assert sorted(model.classes[token] for token in label.tokens) == [" good", " plot"]
    assert label_of(model, " plot, good ,zebra") == label
    assert [model.classes[token] for token in label_of(model, ["able"]).tokens] == ["able"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "as a list"),
        (5, "as a list"),
        ([3], "as a list"),
        ("", "single words"),
        (["two words"], "single words"),
        (["!"], "single words"),
        (["zebra", "quagga"], "No word of the label is a whole token of the model: zebra, quagga"),
    ],
)
def test_a_label_that_is_none_is_refused(words, message):
    with pytest.raises(BadInput, match=message):
        label_of(build("gpt2"), words)


@torch.no_grad()
@pytest.mark.parametrize("model", [build("gpt2"), build("own-gpt2"), writer()], ids=["gpt2", "own-gpt2", "writer"])
def test_raised_words_are_those_whose_logits_a_small_step_raises_most(model):
    dictionary, documents = random_dictionary(model), [model.encode(text) for text in families.TEXTS]
    network, rows = model.network, []
    norm = network.norm if hasattr(network, "norm") else network.transformer.ln_f
    table = network.W_e if hasattr(network, "W_e") else network.lm_head.weight
    hook = norm.register_forward_pre_hook(lambda _, args: rows.append(args[0][0]))
    for document in documents:
        model.token_logits(model.embed([document]), [document], None, len(document.ids))
    hook.remove()
    own = np.concatenate([document.words != SPECIAL for document in documents])
    x, d = torch.cat(rows)[own], dictionary.W_dec[4].double()
    step = (norm(x + 1e-5 * d) - norm(x - 1e-5 * d)).mean(dim=0) / 2e-5
    raised = (table @ step).tolist()
    order = sorted(range(len(raised)), key=lambda token: -raised[token])
    words = [model.classes[t][1:].lower() for t in order if re.fullmatch(r" \w\w+", model.classes[t])]
    label = raised_label(dictionary, 4, model, documents)
    assert label.words == tuple(dict.fromkeys(words))[: len(label.words)]
    assert len(label.words) == 5
    assert label.source == "logit lens"
