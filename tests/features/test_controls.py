import re
from typing import Any

import numpy as np
import pytest
import torch

from heedful.document import SPECIAL
from heedful.errors import BadInput
from heedful.features.controls import Move, difference_in_means, difference_of_texts, random_direction
from heedful.features.labelled import label_of
from heedful.models.language.activations import find_sites, record_activations
from tests import families
from tests.families import TEXTS
from tests.features.random_dictionaries import random_dictionary
from tests.features.test_clamp import layer_of, text_of
from tests.models.language.test_writer import writer


def build(family) -> Any:
    return families.build(family)


STORY = ["the film was good . a dull plot ! the film", "a bad story , but not a dull plot .", "good good"]


def rows_of(model, text, layer=1):
    """The activations of a text's tokens, and the characters where each begins."""
    document = model.encode(text)
    site = find_sites(model, "residual")[layer]
    x = record_activations(model, [document], [site]).at[site][0].double().numpy()
    return [
        (row, start) for row, (start, _), word in zip(x, document.spans, document.words, strict=True) if word != SPECIAL
    ]


@pytest.mark.parametrize("family", ["gpt2", "llama", "own-gpt2"])
def test_a_move_along_the_feature_is_its_clamp_or_push(family):
    model = build(family)
    dictionary, document = random_dictionary(model), model.encode(TEXTS[1])
    with Move(dictionary, 3, "clamp", 4.0, dictionary.W_dec[3]).on(model):
        moved, fingerprint = model.logits([document]), model.fingerprint
    with dictionary.clamp({3: 4.0}):
        assert np.allclose(model.logits([document]), moved, atol=1e-6)
    assert fingerprint != model.fingerprint
    with Move(dictionary, 3, "push", 4.0, dictionary.W_dec[3]).on(model):
        moved = model.logits([document])
    with dictionary.push(3, 4.0):
        assert np.allclose(model.logits([document]), moved, atol=1e-6)


def test_a_control_moves_every_token_as_far_as_the_clamp_would():
    model = writer()
    dictionary, document = random_dictionary(model), model.encode(TEXTS[1])
    u = random_direction(dictionary, 3, 0)
    is_text = text_of(model, document)

    def hook(_module, args, named):
        x = args[0]
        s = torch.relu(x.float() @ dictionary.W_enc[3] + dictionary.b_enc[3])
        return (x + is_text(x)[:, None] * (4.0 - s)[..., None] * u, *args[1:]), named

    with Move(dictionary, 3, "clamp", 4.0, u).on(model):
        moved = model.logits([document])
    handle = layer_of(model, 1).register_forward_pre_hook(hook, with_kwargs=True)
    assert np.allclose(model.logits([document]), moved, atol=1e-6)
    handle.remove()


def test_a_random_direction_has_length_1_and_depends_on_seed_and_feature():
    dictionary = random_dictionary(build("gpt2"))
    drawn = [random_direction(dictionary, *asked) for asked in ((3, 0), (3, 1), (4, 0), (3, 0))]
    assert torch.equal(drawn[0], drawn[3])
    assert len({tuple(own.tolist()) for own in drawn}) == 3
    assert all(own.norm() == pytest.approx(1, abs=1e-6) for own in drawn)


@pytest.mark.parametrize("model", [build("gpt2"), writer()], ids=["gpt2", "writer"])
def test_the_difference_in_means_is_that_of_tokens_of_sentences_with_and_without_a_word(model):
    dictionary, label = random_dictionary(model), label_of(model, ["good", "story"])
    inside, outside, counts = [], [], [0, 0]
    for text in STORY:
        for sentence in re.finditer(r"\S[^.!]*[.!]?", text):
            has = bool(re.search(r"\b(good|story)\b", sentence[0]))
            counts[has] += 1
            # A token begins at its space in some models, and behind it in others.
            rows = [row for row, start in rows_of(model, text) if sentence.start() - 1 <= start < sentence.end()]
            (inside if has else outside).extend(rows)
    expected = np.mean(inside, axis=0) - np.mean(outside, axis=0)
    result = difference_in_means(dictionary, model, [model.encode(text) for text in STORY], label)
    assert np.allclose(result.u, expected / np.linalg.norm(expected), atol=1e-6)
    assert result.about == f"{counts[1]} sentences with a labelled word and {counts[0]} without"


def test_the_difference_of_two_lists_of_texts_is_over_all_their_tokens():
    model = build("llama")
    dictionary = random_dictionary(model)
    means = [np.mean([row for text in texts for row, _ in rows_of(model, text)], axis=0) for texts in (STORY, TEXTS)]
    expected = means[0] - means[1]
    documents = [[model.encode(text) for text in texts] for texts in (STORY, TEXTS)]
    result = difference_of_texts(dictionary, model, *documents)
    assert np.allclose(result.u, expected / np.linalg.norm(expected), atol=1e-6)
    assert result.about == "3 texts with the property and 3 without"


def test_examples_that_show_no_difference_are_refused():
    model = build("gpt2")
    dictionary, documents = random_dictionary(model), [model.encode(text) for text in STORY]
    with pytest.raises(BadInput, match=r"No sentence .* contains a word of the label \(very\)"):
        difference_in_means(dictionary, model, documents, label_of(model, ["very"]))
    with pytest.raises(BadInput, match="Every sentence"):
        difference_in_means(dictionary, model, documents[2:], label_of(model, ["good"]))
    with pytest.raises(BadInput, match="no direction between"):
        difference_of_texts(dictionary, model, documents, documents)
