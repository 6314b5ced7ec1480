from contextlib import nullcontext
from typing import Any

import pytest

import heedful
from heedful.generation.generate import configured
from heedful.generation.many_prompts import continue_all
from tests import families
from tests.features.random_dictionaries import random_dictionary
from tests.models.language.test_writer import writer


def build(family) -> Any:
    return families.build(family)


PROMPTS = [
    "the film was good .",
    "the film",
    "a very bad unbelievable story ,",
    "the film was very bright",
    "good film",
]
FAMILIES = ("gpt2", "llama", "own-gpt2", "t5", "writer")


def rule(strategy) -> Any:
    return configured(strategy, {})


def model_of(family) -> Any:
    return writer() if family == "writer" else build(family)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("strategy", ["greedy", "nucleus"])
def test_every_prompt_is_continued_as_if_it_were_alone(family, strategy):
    model = model_of(family)
    documents = [model.encode(prompt) for prompt in PROMPTS]
    together = continue_all(model, documents, rule(strategy), 7, 3)
    alone = [heedful.generate(model, text, strategy, max_new=7, seed=3, progress=None).ids for text in PROMPTS]
    assert together == alone
    assert len({*together}) > 1


@pytest.mark.parametrize("family", ["gpt2", "writer"])
def test_prompts_of_a_batch_are_steered_as_each_alone(family):
    model = model_of(family)
    dictionary = random_dictionary(model)
    documents = [model.encode(prompt) for prompt in PROMPTS]
    texts = []
    for context in (nullcontext(), dictionary.clamp({3: 9.0})):
        with context:
            together = continue_all(model, documents, rule("sampling"), 6, 0)
            alone = [heedful.generate(model, text, "sampling", max_new=6, progress=None).ids for text in PROMPTS]
        assert together == alone
        texts.append(together)
    assert texts[0] != texts[1]


def test_a_row_with_little_room_ends_before_the_others():
    model: Any = writer()
    long = "a good film and a bad story , but not dull ! the plot was good"
    documents = [model.encode(text) for text in ("a good film", long)]
    room = model.room - len(documents[1].ids)
    assert 0 < room < 12
    short, few = continue_all(model, documents, rule("sampling"), 12, 1)
    assert len(few) <= room
    assert short == heedful.generate(model, "a good film", "sampling", max_new=12, seed=1, progress=None).ids
    assert few == heedful.generate(model, long, "sampling", max_new=12, seed=1, progress=None).ids
