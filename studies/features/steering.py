"""Whether clamping ten features changes what a model writes in the labelled direction more than two controls.

    python -m studies.features.steering --model ../shared/models/stories15m --dictionary runs/stories-dict \
        --texts held-out.jsonl --out runs/steering

The texts must not be those that the dictionary was trained on. A quarter of them gives the prompts, their first words;
the others describe the features and are the examples of the difference in means. Features are chosen by their labels
alone, before anything is steered: token rules of an AUROC of at least 0.9 whose values are whole words. The same call
resumes.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import heedful
from heedful.datasets.texts import places_by_hash, texts_in
from heedful.features.labelled import label_of, words_in
from heedful.features.reading.description import Description
from heedful.features.steering import CONTROLS, FEATURE, UNCHANGED, Steering, rounded, shown
from heedful.run_folder import write_atomically

FACTORS = (0.1, 0.2, 0.4, 1.0)
"""Strengths as multiples of 5x: half of the largest activation, 1x, 2x and 5x."""
MOST_WORDS = 8


def labels(
    model: Any, descriptions: Sequence[Description], n: int, least: float, texts: Sequence[str]
) -> list[tuple[Description, list[str]]]:
    """The n features whose labels predict best where they are active, with the words of these; no two share a word.

    A value that is no word of the texts, such as the beginning of one, is no word of a label.
    """
    whole = {word for text in texts for word in words_in(text)}
    chosen: list[tuple[Description, list[str]]] = []
    for own in sorted(
        descriptions, key=lambda own: -(own.rule.auroc.value * own.rule.precision.value if own.rule else 0)
    ):
        if own.rule is None or own.rule.aspect != "token" or own.rule.auroc.value < least:
            continue
        words = list(
            dict.fromkeys(value.casefold() for value in own.rule.values if re.fullmatch(r"[^\W\d_]{3,}", value))
        )
        if not whole.issuperset(words):
            continue
        taken = {word for _, others in chosen for word in others}
        if not words or len(own.rule.values) > MOST_WORDS or taken & {*words} or not _are_tokens(model, words):
            continue
        chosen.append((own, words))
        if len(chosen) == n:
            break
    return chosen


def _are_tokens(model: Any, words: list[str]) -> bool:
    try:
        return not label_of(model, words).lost
    except heedful.HeedfulError:
        return False


def lines_of(result: Steering, description: Description, words: list[str]) -> list[str]:
    """A feature's verdict at every strength, with the perplexities."""
    assert description.rule is not None
    lines = [f"## Feature {result.feature}: {', '.join(words)} (AUROC {description.rule.auroc})", ""]
    lines += [f"Difference in means: {result.examples}; cosine {result.cosines[CONTROLS[0]]:+.2f}.", ""]
    for factor in result.factors:
        costs = ", ".join(f"{name} {rounded(result.perplexity(name, factor))}" for name in (FEATURE, *CONTROLS))
        plain = rounded(result.perplexity(UNCHANGED))
        lines.append(f"- {result.verdict_on('words', factor)} Perplexity: unchanged {plain}, {costs}.")
        lines.append(f"  {result.verdict_on('log-probability', factor)}")
    return [*lines, ""]


def summary_of(results: Sequence[Steering]) -> list[str]:
    """For every strength how many features beat both controls, one, or none, and the row of each feature."""
    lines = ["| feature | strength | feature | difference in means | random direction | ahead of |", "|" + "---|" * 6]
    for result in results:
        for factor in result.factors:
            sizes = [shown(result.change("words", name, factor)) for name in (FEATURE, *CONTROLS)]
            ahead = ", ".join(result.beaten("words", factor)) or "none"
            lines.append(f"| {result.feature} | {result.strength(factor)} | {' | '.join(sizes)} | {ahead} |")
    both = sum(len(result.beaten("words", factor)) == 2 for result in results for factor in result.factors)
    n = sum(len(result.factors) for result in results)
    chance = (
        f"In {both} of {n} comparisons the feature is ahead of both controls. Two 95 % intervals that are apart differ "
        f"at about p = 0.006, so about {0.003 * n:.2g} of {n} would be ahead of one given control by chance."
    )
    return [*lines, "", "Changes of labelled words per 100 words written, with 95 % intervals.", chance, ""]


def main(given: Sequence[str] | None = None) -> None:
    """Steers ten features, and writes report.md and a page for each."""
    asked = _arguments(given)
    out, model = Path(asked.out), heedful.load(asked.model, asked.device)
    dictionary = heedful.features.load(asked.dictionary, model)
    texts: list[str] = [text for path in asked.texts for text in texts_in(path, "test").texts]
    least = {*places_by_hash(texts, len(texts) // 4)}
    starts = [" ".join(texts[place].split()[: asked.first]) for place in sorted(least)]
    prompts = list(dict.fromkeys(starts))[: asked.n]
    examples = [text for place, text in enumerate(texts) if place not in least]
    descriptions = heedful.features.describe(dictionary, examples, n_texts=asked.describe, progress=False)
    chosen = labels(model, list(descriptions), asked.features, asked.auroc, examples)
    print(f"{len(prompts)} prompts, {len(examples)} other texts; {len(chosen)} features chosen", flush=True)
    results, lines = [], []
    for description, words in chosen:
        result = heedful.features.steer(
            dictionary,
            description.feature,
            prompts,
            words=words,
            examples=examples[: asked.examples],
            max_new=asked.max_new,
            strength="5x",
            curve=FACTORS,
            out=out / f"feature-{description.feature}",
            progress=False,
        )
        result.save(out / f"feature-{description.feature}.html")
        results.append(result)
        lines += lines_of(result, description, words)
        print("\n".join(lines_of(result, description, words)), flush=True)
    if results:
        print("\n".join(summary_of(results)), flush=True)
        write_atomically(out / "report.md", "\n".join([*summary_of(results), *lines]))


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--dictionary", required=True)
    parser.add_argument("--texts", required=True, nargs="+", help="files of texts that were held out")
    parser.add_argument("--features", type=int, default=10, help="how many")
    parser.add_argument("-n", type=int, default=100, help="prompts")
    parser.add_argument("--first", type=int, default=12, help="words of a prompt")
    parser.add_argument("--describe", type=int, default=500, help="texts that describe the features")
    parser.add_argument("--examples", type=int, default=500, help="texts for the difference in means")
    parser.add_argument("--auroc", type=float, default=0.9)
    parser.add_argument("--max-new", type=int, default=40)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", required=True)
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
