"""What ferret makes of a tiny BERT: the numbers that tests/parity/test_ferret.py compares ours with.

ferret 0.4.2 needs transformers < 5 and NumPy < 1.25, so it cannot share our environment. Ours makes the model, one of
its own makes the numbers; both run this file by its path:

    .venv/bin/python tools/ferret_reference.py model
    python3 -m venv FERRET && FERRET/bin/pip install ferret-xai==0.4.2 "numpy<1.25" "pyarrow<21"
    FERRET/bin/python tools/ferret_reference.py numbers
"""

import json
import sys
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

FOLDER = Path(__file__).parents[1] / "tests" / "parity" / "ferret"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = tuple(f"word{number}" for number in range(120))
PIECES = ("play", "##ing", "##ed")
TARGET = 1
ERASER = (0.01, 0.05, 0.10, 0.20, 0.50)
TENTHS = tuple(np.arange(0.1, 1.1, 0.1).tolist())
"""What ferret uses if nothing is said."""


def save_model() -> None:
    """Weights that nobody trained, large enough that every word moves the probabilities."""
    vocabulary = {piece: number for number, piece in enumerate((*SPECIAL, *WORDS, *PIECES))}
    raw = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    raw.normalizer, raw.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    raw.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    raw.save(str(FOLDER / "tokenizer.json"))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=128,
        num_labels=3,
        initializer_range=0.3,
    )
    BertForSequenceClassification(config).save_pretrained(FOLDER)


def texts() -> dict[str, str]:
    """One in which every share of ERASER is another number of words, shorter ones, and one with words of two tokens."""
    chance = np.random.default_rng(0)

    def drawn(n_words: int) -> str:
        return " ".join(chance.choice(WORDS, size=n_words, replace=False))

    return {"hundred": drawn(100), "twenty": drawn(20), "nine": drawn(9), "pieces": "word1 playing word2 played word3"}


def numbers() -> None:
    from ferret.evaluators.faithfulness_measures import (
        AOPC_Comprehensiveness_Evaluation,
        AOPC_Sufficiency_Evaluation,
        TauLOO_Evaluation,
    )
    from ferret.evaluators.plausibility_measures import (
        AUPRC_PlausibilityEvaluation,
        Tokenf1_PlausibilityEvaluation,
        TokenIOU_PlausibilityEvaluation,
    )
    from ferret.explainers.explanation import Explanation, ExplanationWithRationale

    names = {f"{name.strip('[]').lower()}_token": name for name in SPECIAL}
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(FOLDER / "tokenizer.json"), model_max_length=128, **names)
    model = BertForSequenceClassification.from_pretrained(FOLDER).eval()
    chance = np.random.default_rng(1)
    found = []
    for name, text in texts().items():
        tokens = ["[CLS]", *tokenizer.tokenize(text), "[SEP]"]
        scores = chance.standard_normal(len(tokens)).round(6)
        explanation = Explanation(text, tokens, scores, "given", TARGET)
        tau = TauLOO_Evaluation(model, tokenizer).compute_evaluation(explanation, target=TARGET).score
        runs = []
        for only_pos, remove_tokens, thresholds in product((True, False), (True, False), (ERASER, TENTHS)):
            run = {"only_pos": only_pos, "remove_tokens": remove_tokens, "thresholds": thresholds}
            for measure in (AOPC_Comprehensiveness_Evaluation, AOPC_Sufficiency_Evaluation):
                evaluator, scored = measure(model, tokenizer), []
                for some in (thresholds, *((threshold,) for threshold in thresholds)):
                    removal = {"remove_tokens": remove_tokens, "based_on": "perc", "thresholds": some}
                    settings = {"only_pos": only_pos, "removal_args": removal}
                    scored.append(evaluator.compute_evaluation(explanation, target=TARGET, **settings).score)
                run[evaluator.NAME] = {"aopc": float(scored[0]), "each": [float(score) for score in scored[1:]]}
            runs.append(run)
        marks = (np.arange(len(tokens)) % 3 == 1).astype(int)
        marked = ExplanationWithRationale(text, tokens, np.abs(scores), "given", TARGET, marks)
        plausible = {"marks": marks[1:-1].tolist()}
        for measure in (AUPRC_PlausibilityEvaluation, Tokenf1_PlausibilityEvaluation, TokenIOU_PlausibilityEvaluation):
            settings = {"only_pos": True, "top_k_rationale": int(marks[1:-1].sum())}
            evaluator = measure(model, tokenizer)
            plausible[evaluator.NAME] = float(evaluator.compute_evaluation(marked, **settings).score)
        # The scores of [CLS] and [SEP] are not used.
        row = {"name": name, "text": text, "scores": scores[1:-1].tolist(), "tau": float(tau), "runs": runs}
        found.append({**row, "plausibility": plausible})
    versions = {package: version(package) for package in ("ferret-xai", "transformers", "torch", "numpy")}
    content = {"versions": versions, "target": TARGET, "texts": found}
    (FOLDER / "reference.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    {"model": save_model, "numbers": numbers}[sys.argv[1]]()
