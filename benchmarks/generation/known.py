"""Our explainers where all masks were enumerated: coverage of intervals, datamodelling scores beside ContextCite's.

    python -m benchmarks.generation.known CASES.json FOLDER MODEL [--absence replace] [--seeds 10]

The model only reads the prompts: every value comes from the enumeration (`python -m
benchmarks.generation.enumeration`), so both methods see the same function, and the exact Shapley values and the
ceiling of the score are known. What is explained is log p of the whole output.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import heedful
from benchmarks.generation.cases import Case, read_cases
from benchmarks.generation.context_cite import context_cite, datamodelling_score
from benchmarks.generation.enumeration import all_masks
from benchmarks.generation.exact_values import ceiling, exact_shapley
from heedful.document import Document, Unit
from heedful.errors import TooFewSamples
from heedful.explainers import Explainer, configure
from heedful.explainers.run import run_explainer
from heedful.explanation import Explanation
from heedful.generation.continuation import Continuation, Store
from heedful.generation.prompt import read_prompt
from heedful.generation.written import fixed, with_output
from heedful.models.budget import Budget
from heedful.models.language import LanguageModel, check_writes
from heedful.models.question import Question, SharedResults, Wanted
from heedful.perturb.sweep import mask_keys
from heedful.target import Target

COUNTS = (16, 20, 24, 32, 40, 48, 64)
N_HELD_OUT = 512


@dataclass(frozen=True, eq=False)
class Known:
    """A case whose values on all masks are stored where the explainers look for them."""

    document: Document
    unit: Unit
    model: Continuation
    values: np.ndarray
    """[mask] log p of the output."""
    n_output: int

    def explain(self, explainer: Explainer) -> Explanation:
        target = Target(0, "the output", None, self.model.scale, self.model.returns)
        shared = SharedResults(self.model, (self.document,), {})
        question = Question(self.model, (self.document,), Wanted(target), Budget(), None, shared)
        (explanation,) = run_explainer(explainer, question)
        return explanation


def known(writer: LanguageModel, case: Case, table: np.ndarray, absence: str) -> Known:
    """A continuation that never evaluates its network."""
    prompt = read_prompt(writer, case.prompt, case.passages)
    if prompt.ids.tolist() != case.ids:
        raise ValueError("the enumeration is of other tokens")
    document, unit = fixed(with_output(writer, prompt, case.output)), "word" if case.passages is None else "passage"
    values = table.astype(np.float64).sum(axis=1)
    sources = np.append(case.sources, np.full(len(case.output), -1))
    keep = np.concatenate([all_masks(case.n_sources), np.ones((len(values), 1), dtype=bool)], axis=1)[:, sources]
    store = Store(values={(document, absence, False): dict(zip(mask_keys(keep), values[:, None], strict=True))})
    model = Continuation(writer, groups=(tuple(range(len(case.output))),), store=store, written=tuple(case.output))
    return Known(document, unit, model, values, len(case.output))


def read_tables(folder: Path, stem: str, absence: str) -> dict[int, np.ndarray]:
    """The enumerations in a folder by the number of their case: files of one case, or of several (…-FIRST-LAST.npy)."""
    tables: dict[int, np.ndarray] = {}
    for file in folder.glob(f"{stem}-{absence}-*.npy"):
        places = file.stem.removeprefix(f"{stem}-{absence}-").split("-")
        if not all(place.isdigit() for place in places):
            continue
        part = np.load(file)
        first, each = int(places[0]), part[None] if len(places) == 1 else part
        tables |= dict(enumerate(each, start=first))
    return tables


def coverage(cases: list[Known], absence: str, n_masks: int, n_seeds: int) -> str:
    """How often the 95 % intervals of Shapley values contain the exact ones; half-widths, errors and scores."""
    inside, widths, errors, sizes = [], [], [], []
    for case in cases:
        exact = exact_shapley(case.values[:, None])[0]
        for seed in range(n_seeds):
            settings = {"n_samples": n_masks, "absence": absence, "unit": case.unit, "seed": seed}
            explanation = case.explain(configure("shapley-sampled", settings))
            if explanation.error is None:
                return "no intervals"
            inside.append(np.abs(explanation.scores - exact) <= explanation.error + 1e-12)
            widths.append(explanation.error.mean())
            errors.append(np.sqrt(np.mean((explanation.scores - exact) ** 2)))
            sizes.append(np.sqrt(np.mean(exact**2)))
    share, each = np.mean(inside), np.array(inside).reshape(len(cases), -1).mean(axis=1)
    spread = 1.96 * each.std(ddof=1) / np.sqrt(len(each))
    return (
        f"{100 * share:5.1f} % (± {100 * spread:.1f}), half-width {np.mean(widths):.3f}, "
        f"error {np.mean(errors):.3f}, scores {np.mean(sizes):.3f}"
    )


def scores_of(case: Known, method: str, absence: str, n_masks: int, seed: int) -> np.ndarray:
    """The weights of one method after so many evaluations."""
    if method == "context-cite":
        place = 1 << np.arange(case.values.size.bit_length() - 2, -1, -1)
        return context_cite(lambda keep: case.values[keep @ place], len(place), case.n_output, seed, n_masks)[0]
    name, _, setting = method.partition(" ")
    settings = {"n_samples": n_masks, "absence": absence, "unit": case.unit, "seed": seed}
    if setting:
        key, value = setting.split("=")
        settings[key] = float(value) if value.replace(".", "").isdigit() else value
    return case.explain(configure(name, settings)).scores


METHODS = ("context-cite", "shapley-sampled", "lime kernel_width=1000", "lime", "slalom")


def datamodelling(cases: list[Known], absence: str, n_seeds: int) -> None:
    """The mean score of every method after some numbers of masks, on masks that none of them drew."""
    rng = np.random.default_rng(12345)
    held = [rng.choice(case.values.size, N_HELD_OUT, replace=False) for case in cases]
    print(f"  {'ceiling':26}{np.mean([ceiling(case.values) for case in cases]):.3f}")
    print(f"  {'masks':26}" + "".join(f"{n:>15}" for n in COUNTS))
    for method in METHODS:
        row = []
        for n_masks in COUNTS:
            marks = []
            for case, rows in zip(cases, held, strict=True):
                masks = all_masks(case.values.size.bit_length() - 1)[rows]
                try:
                    weights = [scores_of(case, method, absence, n_masks, seed) for seed in range(n_seeds)]
                except TooFewSamples:
                    break
                marks.append(np.mean([datamodelling_score(w, masks, case.values[rows]) for w in weights]))
            if len(marks) < len(cases):
                row.append(f"{'—':>15}")
                continue
            row.append(f"{np.mean(marks):7.3f} ± {1.96 * np.std(marks, ddof=1) / np.sqrt(len(marks)):.3f}")
        print(f"  {method:26}" + "".join(row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("model")
    parser.add_argument("--absence", default="replace")
    parser.add_argument("--seeds", type=int, default=10)
    asked = parser.parse_args()
    writer = check_writes(heedful.load(asked.model))
    cases, tables = [], read_tables(asked.folder, asked.cases.stem, asked.absence)
    for number, case in enumerate(read_cases(asked.cases)):
        table = tables.get(number)
        if table is not None:
            cases.append(known(writer, case, table, asked.absence))
    print(f"{len(cases)} cases of {asked.cases.stem}, absence {asked.absence}, {asked.seeds} seeds")
    print("Coverage of 95 % intervals of Shapley values")
    for n_masks in (64, 128, 256, 512):
        print(f"  {n_masks} masks: {coverage(cases, asked.absence, n_masks, asked.seeds)}", flush=True)
    print(f"Linear datamodelling score on {N_HELD_OUT} masks, mean ± 95 % over cases")
    datamodelling(cases, asked.absence, asked.seeds)


if __name__ == "__main__":
    main()
