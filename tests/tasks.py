"""One tiny model of every task that is not classification: an input, what is explained of it, and the same by hand."""

import torch
import transformers as hf

import heedful
from tests.families import LABELS, SMALL, hf_config, loud, word_pieces

TEXT = "a bad story , but not a dull plot !"
PAIR = heedful.Pair("the film was ?", TEXT)
FILLED = "a bad [MASK] , but not a dull plot !"
CHOICE = heedful.Pair("the film was", "a dull plot")
SIZES = {"vocab_size": len(word_pieces()), "max_position_embeddings": 64}
KINDS = {
    "answer": ("ForQuestionAnswering", PAIR, {"target": "bad story"}),
    "label": ("ForTokenClassification", TEXT, {"target": "a#2=good"}),
    "masked": ("ForMaskedLM", FILLED, {"target": "story"}),
    "next": ("ForNextSentencePrediction", PAIR, {"target": "random"}),
    "choice": ("ForMultipleChoice", CHOICE, {}),
}
CASES = [(name, "bert") for name in KINDS]
CASES += [(name, "distilbert") for name in ("answer", "label", "masked", "choice")]
CASES += [("answer", "roberta")]


def network_of(kind, family):
    torch.manual_seed(0)
    name = {"bert": "Bert", "distilbert": "DistilBert", "roberta": "Roberta"}[family] + KINDS[kind][0]
    sizes = {"dim": 16, "n_layers": 3, "n_heads": 4, "hidden_dim": 24} if family == "distilbert" else SMALL
    labels = LABELS if kind == "label" else {}
    more = {"type_vocab_size": 2, "pad_token_id": 0} if family == "roberta" else {}
    return loud(getattr(hf, name)(hf_config(family, **SIZES, **sizes, **labels, **more))).double().eval()


def inputs_of(kind, family, ids=None):
    """The tensors as the tokenizer gives them, with other ids if they are given."""
    text = KINDS[kind][1]
    parts = (text.first, text.second) if isinstance(text, heedful.Pair) else (text,)
    inputs = dict(word_pieces()(*parts, return_tensors="pt"))
    if family == "distilbert":
        del inputs["token_type_ids"]
    return inputs if ids is None else {**inputs, "input_ids": ids}


def by_hand(kind, network, inputs):
    """The scalar from what the network itself returns, with the places counted by hand."""
    if kind == "choice":
        return network(**{name: x[:, None] for name, x in inputs.items()}).logits[0, 0]
    output = network(**inputs)
    if kind == "answer":  # [CLS] the film was ? [SEP] a bad story
        return output.start_logits[0, 7] + output.end_logits[0, 8]
    if kind == "label":  # [CLS] a bad story , but not a
        return output.logits[0, 7, 1]
    if kind == "masked":
        return output.logits[0, 3, word_pieces().get_vocab()["story"]]
    return output.logits[0, 1]
