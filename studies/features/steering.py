"""Whether clamping ten features changes what a model writes in the labelled direction more than two controls.

    python -m studies.features.steering --model runs/stories15m --dictionary runs/dict/stories15m-16 \
        --texts runs/dict/stories15m-held-out.jsonl --out runs/steering
    python -m studies.features.best_labels runs/steering/described

The texts must not be those that the dictionary was trained on. A quarter of them gives the prompts, their first words;
the others describe the features and are the examples of the difference in means. Features are chosen by their labels
alone, before anything is steered, as `best_labels` does; the second call prints them. The same call resumes. With
--prompts the prompts are the first words of other texts, such as new ones to confirm what was found.
"""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import heedful
from heedful.datasets.texts import places_by_hash, texts_in
from heedful.features.labelled import label_of
from heedful.features.reading.description import Description, Descriptions
from heedful.features.steering import CONTROLS, FEATURE, UNCHANGED, Steering, rounded, shown
from heedful.run_folder import write_atomically
from studies.features.best_labels import best_labels


def labelled(model: Any, descriptions: Descriptions, n: int) -> list[tuple[Description, list[str]]]:
    """The features of `best_labels` with the words of their labels; one without a word that is a token is left out."""
    chosen = []
    for feature in best_labels([own.as_dict() for own in descriptions], n):
        words = list(dict.fromkeys(value.casefold() for value in feature["rules"][0]["values"]))
        with suppress(heedful.HeedfulError):
            label_of(model, words)
            chosen.append((descriptions[feature["feature"]], words))
    return chosen


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
    others = [texts[place] for place in sorted(least)]
    begun = others if asked.prompts is None else texts_in(asked.prompts, "test").texts
    known = set() if asked.prompts is None else {_start(text, asked.first) for text in others}
    starts = dict.fromkeys(_start(text, asked.first) for text in begun)
    prompts = [start for start in starts if start not in known][: asked.n]
    examples = [text for place, text in enumerate(texts) if place not in least]
    descriptions = heedful.features.describe(dictionary, examples, n_texts=asked.describe, progress=False)
    descriptions.save(out / "described")
    chosen = labelled(model, descriptions, asked.features)
    chosen = [pair for pair in chosen if not asked.only or pair[0].feature in asked.only]
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
            strength="1x",
            curve=asked.strengths,
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


def _start(text: str, n: int) -> str:
    return " ".join(text.split()[:n])


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--dictionary", required=True)
    parser.add_argument("--texts", required=True, nargs="+", help="files of texts that were held out")
    parser.add_argument("--prompts", help="a file of other texts whose first words are the prompts")
    parser.add_argument(
        "--only", type=int, nargs="+", help="of the chosen features, the numbers of those that are steered"
    )
    parser.add_argument("--features", type=int, default=10, help="how many")
    parser.add_argument("-n", type=int, default=100, help="prompts")
    parser.add_argument(
        "--strengths", type=float, nargs="+", default=[0.1, 0.25, 0.5, 1.0, 2.0], help="multiples of 1x"
    )
    parser.add_argument("--first", type=int, default=12, help="words of a prompt")
    parser.add_argument("--describe", type=int, default=500, help="texts that describe the features")
    parser.add_argument("--examples", type=int, default=500, help="texts for the difference in means")
    parser.add_argument("--max-new", type=int, default=40)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", required=True)
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
