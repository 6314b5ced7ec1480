"""The study of planted cues: what its prompts are, and how an answer is judged."""

import numpy as np
import pytest

import heedful
from studies.context_cues.__main__ import cue_row, distractors, judged, needs_context, summary
from studies.context_cues.prompts import DISTRACTORS, Planted, planted
from tests.families import build


@pytest.mark.parametrize("style", ["chat", "story"])
def test_only_one_sentence_of_the_context_has_the_cue(style):
    for item in planted(style, 40, 0):
        words = {"she": "girl", "he": "boy"}.get(item.cue, item.cue)
        has = [words in sentence.strip(".").split() for sentence in item.sentences]
        assert [place for place, found in enumerate(has) if found] == [item.place]
        assert item.output.endswith(item.cue)


def test_the_same_seed_gives_the_same_prompts_and_another_gives_others():
    first, same, other = (list(planted("chat", 12, seed)) for seed in (0, 0, 1))
    assert first == same != other


def test_distractors_have_no_cue():
    item = next(planted("story", 1, 0))
    assert all(part in " ".join(DISTRACTORS["story"]) for part in distractors(item, 0).split(". "))


def test_a_cue_is_right_if_its_sentence_has_the_largest_score():
    item = Planted("name", ("A cat sat.", "The film was good.", "It rained."), 1, "the film was", " good", "good")
    model = build("gpt2")
    told = heedful.context(model, item.context, item.prompt, item.output, n_null=19, chat=False, progress=False)
    row = cue_row(told, item, 0)
    assert row["right"] == (int(np.abs(told.attribution.scores[0]).argmax()) == 1)
    assert row["flagged"] == bool(told.reliant[0])


def test_a_prompt_is_usable_if_the_cue_is_preferred_with_the_context_alone():
    item = Planted("name", ("A cat sat.", "The film was good.", "It rained."), 1, "the film was", " good", "good")
    place, usable = needs_context(build("gpt2"), item)
    assert place == 0
    assert usable in (True, False)
    assert "usable" in judged(build("gpt2"), item, 0, "planted", 19, [])


def test_the_summary_counts_what_is_usable():
    rows = [
        {"usable": True, "kind": "name", "right": True, "flagged": True, "flagged_alone": True},
        {"usable": True, "kind": "name", "right": False, "flagged": True, "flagged_alone": True},
        {"usable": False, "kind": "name"},
    ]
    lines = list(summary(rows, "planted"))
    assert lines[0].startswith("3 prompts tried; in 2")
    assert lines[1].startswith("all right: 1/2 = 50.0 %")
