"""The features whose labels predict best where they are active, as a table in Markdown.

    heedful features show runs/dict/stories15m-16 --model runs/stories15m --texts runs/dict/stories15m-held-out.jsonl \
        --out runs/described
    python -m studies.features.best_labels runs/described

The rule: the label names tokens, each a word of at least three letters; the feature is active in at least 100 texts;
the 95 % interval of the AUROC lies above 0.9. The features are ordered by AUROC × precision, and one that shares a word
with an earlier one is left out.
"""

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LEAST_AUROC, LEAST_TEXTS = 0.9, 100
_BEFORE, _BEHIND = 6, 5


def best_labels(features: Sequence[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    """The n best features, from the lines of features.jsonl."""
    chosen: list[dict[str, Any]] = []
    taken: set[str] = set()
    for own in sorted(filter(_is_fit, features), key=lambda own: -_worth(own["rules"][0])):
        words = {value.casefold() for value in own["rules"][0]["values"]}
        if taken.isdisjoint(words):
            chosen.append(own)
            taken |= words
    return chosen[:n]


def _is_fit(feature: dict[str, Any]) -> bool:
    if not feature["rules"] or feature["n_texts"] < LEAST_TEXTS:
        return False
    rule = feature["rules"][0]
    words = all(re.fullmatch(r"[^\W\d_]{3,}", value) for value in rule["values"])
    return rule["aspect"] == "token" and words and (rule["auroc"][1] or 0.0) > LEAST_AUROC


def _worth(rule: dict[str, Any]) -> float:
    return rule["auroc"][0] * rule["precision"][0]


def row_of(feature: dict[str, Any]) -> str:
    """A line of the table."""
    rule, excerpt = feature["rules"][0], feature["excerpts"][0]
    auroc, low, high = rule["auroc"]
    tokens, peak = excerpt["tokens"], excerpt["peak"]
    before, own = "".join(tokens[max(0, peak - _BEFORE) : peak]), tokens[peak]
    space, behind = own[: len(own) - len(own.lstrip())], "".join(tokens[peak + 1 : peak + 1 + _BEHIND])
    text = " ".join(f"{before}{space}**{own.strip()}**{behind}".split())
    label = " · ".join(rule["values"]) + (" (strong)" if rule["threshold"] else "")
    numbers = f"{auroc:.3f} [{low:.3f}, {high:.3f}] | {rule['precision'][0]:.2f} | {rule['recall'][0]:.2f}"
    return f"| {feature['feature']} | {label} | {numbers} | … {text} … |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", help="what `heedful features show … --out FOLDER` wrote")
    parser.add_argument("-n", type=int, default=10)
    given = parser.parse_args()
    path = Path(given.folder, "features.jsonl")
    if not path.is_file():
        raise SystemExit(f"{path} is not there; write it with `heedful features show … --out {given.folder}`.")
    lines = path.read_text(encoding="utf-8").splitlines()
    print("| feature | label | AUROC | precision | recall | strongest text |\n| --- | --- | --- | --- | --- | --- |")
    features = [json.loads(line) for line in lines]
    for feature in best_labels(features, given.n):
        print(row_of(feature))
    n = sum(bool(own["rules"]) and own["rules"][0]["auroc"][0] >= LEAST_AUROC for own in features)
    print(f"\n{n:,} of {len(features):,} described features have a label whose AUROC is at least {LEAST_AUROC}.")


if __name__ == "__main__":
    main()
