import json

import pytest

from heedful.features.card import Card

CARD = Card("topk", {"k": 4, "revive": 1.0}, "0123456789abcdef", "gpt2", "mlp", 3, "texts", 1000, 5, {"l0": 4.0}, "fit")


def test_a_card_survives_json():
    assert Card.of_json(CARD.as_json()) == CARD
    assert Card.of_json(Card("relu").as_json()) == Card("relu")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "not one of heedful"),
        ('{"kind": "topk", "colour": "red"}', "not one of heedful"),
        ('{"kind": "topk", "layer": "3"}', "wrong type"),
        ('{"kind": 3}', "wrong type"),
        ("{", "Expecting"),
    ],
)
def test_what_is_no_card_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        Card.of_json(text)


def test_a_card_without_a_kind_is_refused():
    with pytest.raises(TypeError):
        Card.of_json(json.dumps({"layer": 3}))


@pytest.mark.parametrize(
    ("part", "layer", "expected"),
    [
        ("residual", 4, "the residual stream that enters layer 4"),
        ("attention", 0, "the attention output of layer 0"),
        ("mlp", 2, "the MLP output of layer 2"),
        ("residual", -1, "activations of no known layer"),
    ],
)
def test_a_place_is_named_in_words(part, layer, expected):
    assert Card("topk", part=part, layer=layer).place == expected


def test_its_markdown_says_everything():
    text = CARD.as_markdown()
    for part in (
        "topk, k 4, revive 1.0",
        "the MLP output of layer 3 of gpt2 `0123456789abcdef`",
        "1,000 rows",
        "seed 5",
    ):
        assert part in text
    assert "- l0: 4.0" in text
    assert "- Command: `fit`" in text
    assert "not stated" in Card("relu").as_markdown()
