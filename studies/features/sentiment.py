"""Whether the features that matter most for "positive" decide what a sentiment model says, more than random ones.

    python -m studies.features.sentiment --out runs/sentiment

Shapley values over features (`shapley-sampled`) on selection sentences name the features. On test sentences these are
held at 0, and so are random sets: any active features; ones that are as often active; ones whose activations sum to
about as much. Data are SST's validation and test sentences, which the bundled model was not trained on. The same call
resumes. Needs HEEDFUL_DATA, or the hub.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

import heedful
from heedful.datasets.texts import places_by_hash
from heedful.errors import HeedfulError
from heedful.features.ablation import Ablation, Change
from heedful.features.activations import TextSource
from heedful.features.dictionary import Dictionary
from heedful.features.units import FeatureImportance
from heedful.models import Model
from heedful.run_folder import RunFolder, write_atomically
from heedful.statistics.intervals import mean_intervals

CONTROLS = {"active": "any active features", "density": "as often active", "activation": "as much activation"}
NEAREST = 20
"""A matched feature is one of so many that are nearest."""


def sentences(split: Any, n: int) -> tuple[list[str], list[int]]:
    """The n sentences of SST whose hashes are the least, and their classes."""
    examples = heedful.datasets()["sst"]().examples(split)
    places = places_by_hash([example.text for example in examples], n)
    return [examples[place].text for place in places], [int(examples[place].label) for place in places]


def most_important(
    folder: RunFolder, dictionary: Dictionary, model: Model, texts: Sequence[str], target: str, units: int, samples: int
) -> list[FeatureImportance]:
    """Features by the mean |Shapley value| for the target over texts; each text is a step."""
    model_of_features = dictionary.as_units(model, units)
    explanations = []
    for number, text in enumerate(texts):
        path = folder.path / "steps" / f"explanation-{number}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            heedful.explain(
                model_of_features, text, "shapley-sampled", target=target, n_samples=samples, progress=False
            ).save(path)
        explanations.append(heedful.Explanation.load(path))
        say(f"explained {number + 1} of {len(texts)} texts", number + 1, len(texts))
    return heedful.features.importance(explanations)


def activity(dictionary: Dictionary, model: Model, texts: Sequence[str]) -> dict[str, Float[np.ndarray, "feature"]]:
    """Of every feature: the share of tokens in which it is active, and its mean activation."""
    source = TextSource(model, dictionary.card.layer, texts, dictionary.card.part)
    source.rows_a_chunk = source.n_rows
    active = dictionary.encode(source.chunk(0).numpy()).astype(np.float64)
    return {"density": (active > 0).mean(axis=0), "activation": active.mean(axis=0)}


def random_sets(
    features: Sequence[int], about: Mapping[str, Float[np.ndarray, "feature"]], control: str, n_sets: int, seed: int
) -> list[list[int]]:
    """Sets of other features that are active at all; matched ones are drawn from those nearest to each feature."""
    rng = np.random.default_rng([seed, list(CONTROLS).index(control)])
    others = np.setdiff1d(np.flatnonzero(about["density"] > 0), features)
    sets = []
    for _ in range(n_sets):
        drawn: list[int] = []
        for feature in features:
            left = np.setdiff1d(others, drawn)
            if control != "active":
                gaps = np.abs(about[control][left] - about[control][feature])
                left = left[np.argsort(gaps, kind="stable")[:NEAREST]]
            drawn.append(int(rng.choice(left)))
        sets.append(drawn)
    return sets


def most_often(features: Sequence[int], density: Float[np.ndarray, "feature"]) -> list[int]:
    """As many other features, those that are active in most tokens: the strongest control that needs no drawing."""
    order = np.argsort(-density, kind="stable")
    return order[~np.isin(order, features)][: len(features)].tolist()


def per_token(
    features: Sequence[int],
    results: Mapping[str, Ablation],
    often: Sequence[int],
    density: Float[np.ndarray, "feature"],
) -> str:
    """How many of the features of each set are active in a token, on average: dense features have no equals."""
    parts = {"removed": density[list(features)].sum()}
    for control, ablation in results.items():
        parts[CONTROLS[control]] = np.mean([density[list(each)].sum() for each in ablation.random])
    parts["most often active"] = density[list(often)].sum()
    return ", ".join(f"{name} {number:.2f}" for name, number in parts.items())


def over_draws(ablation: Ablation) -> Change:
    """The mean change of the accuracy without random sets, with its interval over the sets in place of the texts."""
    assert ablation.accuracy is not None
    changes = ablation.accuracy[2:] - ablation.accuracy[0]
    low, high = mean_intervals(changes[None])
    return Change(float(changes.mean()), float(low[0]), float(high[0]))


def say(line: str, done: int = 1, total: int = 1) -> None:
    if done == total or done % 20 == 0:
        print(line, flush=True)


def table_of(results: Mapping[str, Ablation]) -> str:
    """A row per control, for the accuracy and for the output."""
    head = "| control | measure | without the features | without random ones | over draws | how much more | p |"
    lines = [head, "| --- " * 7 + "|"]
    for control, ablation in results.items():
        for of in ("accuracy", "output"):
            own, others, more = ablation.changes(of)
            draws = over_draws(ablation) if of == "accuracy" else "—"
            lines.append(
                f"| {CONTROLS[control]} | {of} | {own} | {others} | {draws} | {more} | {ablation.p_value(of):.3f} |"
            )
    return "\n".join(lines)


def sentence_of(results: Mapping[str, Ablation]) -> str:
    """What was found, by the accuracy beside each control."""
    parts = []
    for control, ablation in results.items():
        more, p = ablation.changes("accuracy")[2], ablation.p_value("accuracy")
        word = "more" if more.low > 0 and p <= 0.05 else "not measurably more"
        parts.append(f"{word} than random features of the kind “{CONTROLS[control]}” ({more}, p = {p:.3f})")
    return "Removing the features moves the accuracy " + "; ".join(parts) + "."


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m studies.features.sentiment", description=(__doc__ or "").split("\n")[0])
    add: Any = parser.add_argument
    add("--model", default="reviews", help="a sentiment model with the classes negative and positive")
    add("--dictionary", default="reviews", help="a folder of a dictionary")
    add("--out", type=Path, required=True, help="folder of the results")
    add("--by", default="size", choices=["size", "mean"], help="rank features by mean |score|, or by the mean score")
    add("--features", type=int, default=5, help="how many features are removed")
    add("--select", type=int, default=100, help="sentences that are explained")
    add("--test", type=int, default=600, help="sentences that are judged on")
    add("--units", type=int, default=32, help="features of a sentence that are units")
    add("--samples", type=int, default=320, help="masks of an explanation")
    add("--sets", type=int, default=29, help="random sets of each kind")
    add("--seed", type=int, default=0)
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(given)
    model = heedful.load(options.model)
    dictionary = heedful.features.load(options.dictionary, model)
    folder = RunFolder(options.out)
    # Explanations and ablations are the same whatever is ranked, removed or compared.
    settings = {name: getattr(options, name) for name in ("select", "test", "units", "samples")}
    folder.claim({**settings, "dictionary": dictionary.fingerprint, "model": model.fingerprint})
    selection, _ = sentences("validation", options.select)
    ranked = most_important(folder, dictionary, model, selection, "positive", options.units, options.samples)
    if options.by == "mean":
        ranked.sort(key=lambda row: -row.mean)
    chosen = [row.feature for row in ranked[: options.features]]
    for row in ranked[: options.features]:
        say(
            f"feature {row.feature}: mean |score| {row.mean_abs:.3f} [{row.abs_low:.3f}, {row.abs_high:.3f}], mean "
            f"{row.mean:+.3f} [{row.low:+.3f}, {row.high:+.3f}], a unit of {row.n_texts} of {len(selection)} texts"
        )
    texts, labels = sentences("test", options.test)
    about = activity(dictionary, model, selection)

    def logits(removed: Sequence[int]) -> list[list[float]]:
        if not removed:
            return model(texts).tolist()
        with dictionary.ablate(removed):
            return model(texts).tolist()

    def run(removed: Sequence[int]) -> Float[np.ndarray, "text class"]:
        name = "-".join(map(str, sorted(removed))) or "whole"
        return np.array(folder.step(f"without-{name}", lambda: logits(removed)))

    def ablation(sets: Sequence[Sequence[int]]) -> Ablation:
        runs = np.array([run(removed) for removed in ([], chosen, *sets)])
        right = runs.argmax(axis=2) == np.array(labels)
        positive = runs[..., list(model.classes).index("positive")]
        return Ablation(tuple(chosen), tuple(map(tuple, sets)), "the logit of positive", positive, right)

    results = {}
    for control in CONTROLS:
        results[control] = ablation(random_sets(chosen, about, control, options.sets, options.seed))
        say(f"removed {options.sets} random sets: {CONTROLS[control]}")
    often = most_often(chosen, about["density"])
    whole, without, without_often = ablation([often]).accuracy.tolist()
    text = (
        f"{len(texts)} test sentences; accuracy {whole:.3f}, without features {', '.join(map(str, chosen))} "
        f"{without:.3f}.\n\n{table_of(results)}\n\n{sentence_of(results)}\n\n"
        f"Without the other features that are active most often ({', '.join(map(str, often))}) the accuracy is "
        f"{without_often:.3f}; the removed ones move it by more by {ablation([often]).changes('accuracy')[2]}. Active "
        f"features per token: {per_token(chosen, results, often, about['density'])}.\n"
    )
    write_atomically(options.out / f"report-{options.by}.md", text)
    say(text)


if __name__ == "__main__":
    try:
        main()
    except HeedfulError as error:
        raise SystemExit(f"Error: {error}") from None
