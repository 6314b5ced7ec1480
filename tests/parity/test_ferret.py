"""Removal and plausibility metrics against ferret 0.4.2, whose numbers tools/ferret_reference.py wrote.

It needs other versions of transformers and NumPy than we do. It computed in single precision; we do in double.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import auc, precision_recall_curve
from transformers import BertForSequenceClassification, PreTrainedTokenizerFast

import heedful
from heedful.metrics import measure
from heedful.metrics.plausibility import Auprc, Iou, TokenF1
from heedful.metrics.removal import Comprehensiveness, Sufficiency
from heedful.models.question import ask
from heedful.perturb.document_values import DocumentValues
from tests.metrics.masked_text import evaluation_of

FOLDER = Path(__file__).parent / "ferret"
REFERENCE = json.loads((FOLDER / "reference.json").read_text(encoding="utf-8"))
TEXTS = {kept["name"]: kept for kept in REFERENCE["texts"]}
ERASER = [0.01, 0.05, 0.1, 0.2, 0.5]
OF = {"aopc_comprehensiveness": Comprehensiveness, "aopc_sufficiency": Sufficiency}


@pytest.fixture(scope="module")
def tokenizer():
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    return PreTrainedTokenizerFast(tokenizer_file=str(FOLDER / "tokenizer.json"), **names)


@pytest.fixture(scope="module")
def model(tokenizer):
    return heedful.wrap(BertForSequenceClassification.from_pretrained(FOLDER).double().eval(), tokenizer)


def rationale(scores, threshold, only_pos):
    """The words that ferret takes for a threshold: their number is rounded down, and maybe only positive ones count."""
    named = sorted(range(len(scores)), key=lambda place: -scores[place])[: int(threshold * len(scores))]
    return {place for place in named if scores[place] > 0 or not only_pos}


def rationales(scores, run):
    """Those of all thresholds, without empty ones and without one that is the same as the one before."""
    taken = []
    for threshold in run["thresholds"]:
        named = rationale(scores, threshold, run["only_pos"])
        if named and (not taken or named != taken[-1]):
            taken.append(named)
    return taken


def probabilities(evaluation, keep, absence):
    return np.exp(evaluation.values(keep, absence, "log-probability"))


@pytest.mark.parametrize("remove_tokens", [True, False])
@pytest.mark.parametrize("name", OF)
def test_where_every_share_is_another_whole_number_of_words_the_numbers_are_the_same(model, name, remove_tokens):
    kept = TEXTS["hundred"]
    (run,) = [
        run
        for run in kept["runs"]
        if not run["only_pos"] and run["remove_tokens"] == remove_tokens and run["thresholds"] == ERASER
    ]
    ours = OF[name](absence="delete" if remove_tokens else "replace", evidence="for", measure_of="probability")
    value = measure(ours, evaluation_of(model, kept["text"], kept["scores"], target=REFERENCE["target"]))
    assert value == pytest.approx(run[name]["aopc"], abs=1e-6)
    assert abs(value) > 1e-3


@pytest.mark.parametrize("name", ["hundred", "twenty", "nine"])
@pytest.mark.parametrize("number", range(8))
def test_on_ferret_s_rationales_our_outputs_give_its_numbers(model, name, number):
    kept = TEXTS[name]
    run = kept["runs"][number]
    evaluation, d = evaluation_of(model, kept["text"], kept["scores"], target=REFERENCE["target"]), len(kept["scores"])
    absence = "delete" if run["remove_tokens"] else "replace"
    whole = probabilities(evaluation, np.ones((1, d), dtype=bool), absence)[0]

    def differences(sets, keeps):
        named = np.array([[(place in some) == keeps for place in range(d)] for some in sets])
        return whole - probabilities(evaluation, named, absence)

    alone = [rationale(kept["scores"], threshold, run["only_pos"]) for threshold in run["thresholds"]]
    # A threshold that takes no word has no difference, and alone it is the worst there is.
    for measured, keeps, worst in (("aopc_comprehensiveness", False, 0.0), ("aopc_sufficiency", True, 1.0)):
        expected = differences(rationales(kept["scores"], run), keeps).mean()
        assert run[measured]["aopc"] == pytest.approx(expected, abs=1e-6)
        expected = np.where([len(some) > 0 for some in alone], differences(alone, keeps), worst)
        assert np.allclose(run[measured]["each"], expected, rtol=0, atol=1e-6)


def test_with_fewer_words_the_shares_round_and_count_otherwise(model):
    # Of 20 words ferret takes 0, 1, 2, 4 and 10 and leaves the first out; we take 1, 1, 2, 4 and 10 and count them all.
    kept = TEXTS["twenty"]
    (run,) = [
        run for run in kept["runs"] if not run["only_pos"] and run["remove_tokens"] and run["thresholds"] == ERASER
    ]
    evaluation = evaluation_of(model, kept["text"], kept["scores"], target=REFERENCE["target"])
    for name, metric in OF.items():
        ours = measure(metric(absence="delete", evidence="for", measure_of="probability"), evaluation)
        each = run[name]["each"]
        assert run[name]["aopc"] == pytest.approx(np.mean(each[1:]), abs=1e-6)
        assert ours == pytest.approx(np.mean([each[1], *each[1:]]), abs=1e-6)


def test_what_is_left_of_a_word_is_read_anew_by_ferret_and_not_by_us(model, tokenizer):
    kept = TEXTS["pieces"]
    run = kept["runs"][1]
    assert run["only_pos"]
    assert run["remove_tokens"]
    document, target = model.encode(kept["text"]), REFERENCE["target"]
    ids = document.ids[1:-1]

    def probability(text):
        logits = model([text])[0]
        return np.exp(logits[target]) / np.exp(logits).sum()

    left = [tokenizer.decode(np.delete(ids, sorted(some))) for some in rationales(kept["scores"], run)]
    # The end of a word alone is spelt "##ing", which the tokenizer takes for three unknown words.
    assert any(" ##" in f" {text}" for text in left)
    theirs = np.mean([probability(kept["text"]) - probability(text) for text in left])
    assert run["aopc_comprehensiveness"]["aopc"] == pytest.approx(theirs, abs=1e-6)
    values = DocumentValues(ask(model, [kept["text"]], target, scale="log-probability"), "token")
    keep = np.array([[place not in some for place in range(len(ids))] for some in rationales(kept["scores"], run)])
    ours = np.mean(np.exp(values.whole()) - np.exp(values(keep, "delete")))
    assert abs(ours - theirs) > 1e-3


def test_kendall_s_tau_of_leave_one_out_is_of_the_same_effects(model):
    kept = TEXTS["twenty"]
    evaluation = evaluation_of(model, kept["text"], kept["scores"], target=REFERENCE["target"])
    without = probabilities(evaluation, ~np.eye(20, dtype=bool), "delete")
    assert kendalltau(-without, kept["scores"]).statistic == pytest.approx(kept["tau"], abs=1e-6)


@pytest.mark.parametrize("name", ["hundred", "twenty", "nine"])
def test_as_many_strongest_words_as_are_marked_have_its_f1_and_iou_but_not_its_area(model, name):
    kept = TEXTS[name]
    theirs, marks = kept["plausibility"], np.array(kept["plausibility"]["marks"], dtype=bool)
    marked = replace(evaluation_of(model, kept["text"], kept["scores"], target=REFERENCE["target"]), rationale=marks)
    assert measure(TokenF1(), marked) == pytest.approx(theirs["token_f1_hard_plausibility"], abs=1e-6)
    assert measure(Iou(), marked) == pytest.approx(theirs["token_IOU_hard_plausibility"], abs=1e-6)
    # It joins the points of the curve by straight lines.
    precision, recall, _ = precision_recall_curve(marks, np.abs(kept["scores"]))
    assert theirs["AUPRC_soft_plausibility"] == pytest.approx(auc(recall, precision), abs=1e-6)
    assert measure(Auprc(), marked) != pytest.approx(theirs["AUPRC_soft_plausibility"], abs=1e-3)
