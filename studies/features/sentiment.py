"""Whether the features that matter most for "positive" decide what a sentiment model says, more than random ones.

    python -m studies.features.sentiment --out runs/sentiment

Shapley values over features (`shapley-sampled`) on validation sentences of SST name the features. On test sentences
these are held at 0, and so are random sets of features that are about as often active, and the other features that are
active most often: dense features have no equals. The bundled model was trained on neither. Needs HEEDFUL_DATA, or the
hub.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import heedful
from heedful.datasets.texts import sample_by_hash
from heedful.errors import HeedfulError
from heedful.features.ablation import Ablation
from heedful.features.dictionary import Dictionary
from heedful.run_folder import write_atomically


def sentences(split: Any, n: int) -> tuple[list[str], list[int]]:
    """The n sentences of SST whose hashes are the least, and their classes."""
    examples = heedful.datasets()["sst"]().examples(split)
    places = sample_by_hash([example.text for example in examples], n)
    return [examples[place].text for place in places], [int(examples[place].label) for place in places]


def most_often(dictionary: Dictionary, features: Sequence[int]) -> list[int]:
    """As many other features, those that are active in most tokens: the strongest control that needs no drawing."""
    order = np.argsort(-dictionary.density.double().numpy(), kind="stable")
    return order[~np.isin(order, features)][: len(features)].tolist()


def beside(one: Ablation, other: Ablation) -> Ablation:
    """The first ablation with the features of the second in the place of its random sets."""
    assert one.right is not None
    assert other.right is not None
    outputs, right = np.vstack([one.outputs[:2], other.outputs[1:2]]), np.vstack([one.right[:2], other.right[1:2]])
    return replace(one, random=(other.features,), outputs=outputs, right=right)


def report(result: Ablation, others: Ablation, dictionary: Dictionary) -> str:
    """The accuracies, the changes beside both controls, and how many features of each set are active in a token."""
    assert result.accuracy is not None
    assert others.accuracy is not None
    whole, without = result.accuracy[:2]
    density = dictionary.density.double().numpy()
    drawn = np.mean([density[list(each)].sum() for each in result.random])
    lines = [
        f"{result.outputs.shape[1]} test sentences; accuracy {whole:.3f}, without features "
        f"{', '.join(map(str, result.features))} {without:.3f}, without {', '.join(map(str, others.features))}, which "
        f"are active most often, {others.accuracy[1]:.3f}.",
        result.verdict,
        "",
        "| control | measure | without the features | without the control | difference in size | p |",
        "| --- " * 6 + "|",
    ]
    for name, own in (("about as often active", result), ("active most often", beside(result, others))):
        for of in ("accuracy", "output"):
            changes = " | ".join(map(str, own.changes(of)))
            lines.append(f"| {name} | {of} | {changes} | {own.p_value(of):.3f} |")
    active = [density[list(features)].sum() for features in (result.features, others.features)]
    return "\n".join(
        [
            *lines,
            "",
            f"Active in a token: {active[0]:.2f} of the features, {drawn:.2f} of those drawn, {active[1]:.2f} of those "
            "that are active most often.",
            "",
        ]
    )


def main(given: Sequence[str] | None = None) -> None:
    """Ranks features, removes the first, and writes report.md."""
    options = _arguments(given)
    dictionary = heedful.features.load(options.dictionary, heedful.load(options.model))
    selection, _ = sentences("validation", options.select)
    explanations = heedful.explain(
        dictionary.as_units(n=options.units), selection, "shapley-sampled", target="positive", n_samples=options.samples
    )
    ranked = heedful.features.importance(explanations)[: options.features]
    for row in ranked:
        print(
            f"feature {row.feature}: mean |score| {row.mean_abs:.3f} [{row.abs_low:.3f}, {row.abs_high:.3f}], mean "
            f"{row.mean:+.3f} [{row.low:+.3f}, {row.high:+.3f}], a unit of {row.n_texts} of {len(selection)} texts"
        )
    chosen, data = [row.feature for row in ranked], sentences("test", options.test)
    result = heedful.features.effect(dictionary, chosen, *data, "positive", n_random=options.sets)
    others = heedful.features.effect(dictionary, most_often(dictionary, chosen), *data, "positive", n_random=1)
    text = report(result, others, dictionary)
    write_atomically(options.out / "report.md", text)
    print(text)


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m studies.features.sentiment", description=(__doc__ or "").split("\n")[0])
    add: Any = parser.add_argument
    add("--model", default="reviews", help="a sentiment model with the classes negative and positive")
    add("--dictionary", default="reviews", help="a folder of a dictionary")
    add("--out", type=Path, required=True, help="folder of the report")
    add("--features", type=int, default=5, help="how many features are removed")
    add("--select", type=int, default=100, help="sentences that are explained")
    add("--test", type=int, default=600, help="sentences that are judged on")
    add("--units", type=int, default=32, help="features of a sentence that are units")
    add("--samples", type=int, default=320, help="masks of an explanation")
    add("--sets", type=int, default=29, help="random sets")
    return parser.parse_args(given)


if __name__ == "__main__":
    try:
        main()
    except HeedfulError as error:
        raise SystemExit(f"Error: {error}") from None
