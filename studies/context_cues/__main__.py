"""Runs the study: python -m studies.context_cues MODEL --style chat|story --out FOLDER."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import heedful
from heedful.generation.context import context as reliance_on
from heedful.generation.continuation import Continuation
from heedful.generation.generate import generate
from heedful.generation.prompt import read_prompt
from heedful.generation.reliance import Reliance
from heedful.generation.written import with_output
from heedful.models.attention_hook import still
from heedful.models.language import LanguageModel
from heedful.statistics.intervals import wilson
from studies.context_cues.prompts import Planted, planted

MOST_TRIED = 10
"""For each prompt that is used, so many may be tried."""


def main() -> None:
    """Runs the parts asked for; lines that a file has already are not computed again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--style", choices=("chat", "story"), default="chat")
    parser.add_argument("--part", choices=("planted", "words", "foreign", "reviews", "written"), default="planted")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="other prompts of the same kinds")
    parser.add_argument("--n-null", type=int, default=39)
    parser.add_argument("--reviews", type=Path, help="a file with a text in each line, for the part reviews")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / f"{given.style}-{given.part}.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    model = heedful.load(given.model)
    assert isinstance(model, LanguageModel)
    texts = given.reviews.read_text().splitlines() if given.reviews else []
    n_usable = sum(row["usable"] for row in rows)
    with file.open("a") as out:
        for number, item in enumerate(planted(given.style, given.n * MOST_TRIED, given.seed)):
            if number < len(rows) or n_usable == given.n:
                continue
            row = judged(model, item, number, given.part, given.n_null, texts)
            rows.append(row)
            n_usable += row["usable"]
            out.write(json.dumps(row) + "\n")
            out.flush()
            if number % 10 == 0:
                sys.stderr.write(f"{number}: {n_usable} usable\n")
    sys.stdout.write("\n".join(summary(rows, given.part)) + "\n")


def judged(
    model: LanguageModel, item: Planted, number: int, part: str, n_null: int, texts: list[str]
) -> dict[str, Any]:
    """One prompt: whether the model writes the cue because of the context, and if so what `heedful.context` says."""
    place, usable = needs_context(model, item)
    row: dict[str, Any] = {"number": number, "kind": item.kind, "usable": usable}
    if not usable:
        return row
    settings: dict[str, Any] = {"n_null": n_null, "progress": False, "seed": number}
    if part == "planted":
        return row | cue_row(reliance_on(model, item.context, item.prompt, item.output, **settings), item, place)
    if part == "words":
        settings |= {"method": "leave-one-out", "unit": "word", "n_null": 19}
        return row | cue_row(reliance_on(model, item.context, item.prompt, item.output, **settings), item, place)
    other = review(texts, number) if part == "reviews" else distractors(item, number)
    # An output that was written without a context is chosen by none.
    output = None if part == "written" else generate(model, item.prompt, max_new=12).text
    # One mask a token: sources do not matter here.
    settings |= {"method": "leave-one-out", "unit": "passage", "max_new": 12}
    told = reliance_on(model, other, item.prompt, output, **settings)
    return row | {
        "context": other,
        "tokens": list(told.tokens),
        "p_value": told.p_value.tolist(),
        "p_cxmi": told.p_cxmi.tolist(),
        "output_p_value": told.output_p_value.tolist(),
        "kl": told.kl.tolist(),
    }


@torch.no_grad()
def needs_context(model: LanguageModel, item: Planted) -> tuple[int, bool]:
    """The place of the cue's first token, and whether it is the most likely one with the context, but not without."""
    best = []
    for context in (item.context, None):
        asked = read_prompt(model, item.prompt, context)
        whole = with_output(model, asked, item.output)
        n = len(whole.ids) - len(asked.ids)
        start = whole.text.rindex(item.cue)
        place = next(p for p in range(n) if whole.spans[len(asked.ids) + p][1] > start)
        with still(model.network):
            best.append(int(Continuation(model).token_logits(whole)[0, place].argmax()))
        token = int(whole.ids[len(asked.ids) + place])
    return place, best[0] == token != best[1]


def cue_row(told: Reliance, item: Planted, place: int) -> dict[str, Any]:
    """Whether the cue's token is reliant, and whether the cue is its strongest source."""
    scores = told.attribution.scores[place]
    sources = told.attribution.sources
    top = sources[int(np.abs(scores).argmax())]
    cue = {"woman": "woman", "man": "man", "she": "girl", "he": "boy"}.get(item.cue, item.cue)
    return {
        "tokens": list(told.tokens),
        "reliant": told.reliant.tolist(),
        "flagged": bool(told.reliant[place]),
        "flagged_alone": bool(told.p_value[place] <= 0.05),
        "top": top,
        "right": cue in top.strip(" .").split() or top.strip() == item.sentences[item.place],
        "scores": scores.tolist(),
        "p_cxmi": float(told.p_cxmi[place]),
        "kl": told.kl.tolist(),
    }


def distractors(item: Planted, number: int) -> str:
    """A context of three sentences without a cue, from the same kind of text."""
    from studies.context_cues.prompts import DISTRACTORS

    style = "chat" if item.sentences[(item.place + 1) % 3] in DISTRACTORS["chat"] else "story"
    return " ".join(np.random.default_rng(number).choice(DISTRACTORS[style], 3, replace=False).tolist())


def review(texts: list[str], number: int) -> str:
    """About 30 words of a film review."""
    return " ".join(texts[number % len(texts)].split()[:30])


def summary(rows: list[dict[str, Any]], part: str) -> Iterator[str]:
    """The figures, with 95 % intervals."""
    used = [row for row in rows if row["usable"]]
    yield f"{len(rows)} prompts tried; in {len(used)} the model writes the cue with the context only"
    if part in ("planted", "words"):
        for kind in ("all", *dict.fromkeys(row["kind"] for row in used)):
            own = [row for row in used if kind in ("all", row["kind"])]
            for name in ("right", "flagged", "flagged_alone"):
                yield f"{kind} {name}: {share(sum(row[name] for row in own), len(own))}"
        return
    for name in ("output_p_value", "p_value"):
        p = [value for row in used for value in row[name]]
        yield f"tokens called reliant by {name} ≤ 0.05: {share(sum(value <= 0.05 + 1e-12 for value in p), len(p))}"
    n_any = sum(min(row["output_p_value"]) <= 0.05 + 1e-12 for row in used)
    yield f"outputs with any token called reliant by output_p_value: {share(n_any, len(used))}"


def share(count: int, n: int) -> str:
    """A share with Wilson's 95 % interval."""
    low, high = wilson(count, n)
    return f"{count}/{n} = {100 * count / max(1, n):.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


if __name__ == "__main__":
    main()
