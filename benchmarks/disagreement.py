"""How often the causes of disagreement occur, and how often they prove right when words are really taken out.

python -m benchmarks.disagreement                                       the bundled model; needs the reviews
python -m benchmarks.disagreement --model runs/six-by-six --device cuda  one of several layers (studies.six_by_six)

The rules and what the diagnostic is measured from were chosen on 100 other reviews (seed 0). Of the bundled model the
diagnostic is measured too, as if it were deep, and compared with the exact causes.
"""

import argparse
from collections import Counter
from time import perf_counter

import numpy as np
import torch

import heedful
from heedful.datasets.imdb import Imdb
from heedful.evaluation.disagreement import Disagreement, explain_disagreement
from heedful.evaluation.disagreement.accounts import total
from heedful.evaluation.disagreement.reliability import reliability
from heedful.explainers import configure
from heedful.explainers.explain import run_explainer
from heedful.models import Model
from heedful.models.pooling import PoolingModel
from heedful.models.question import ask
from heedful.models.single_layer import SingleLayer
from heedful.models.transformer import Transformer
from heedful.statistics.correlation import spearman

ABSENCES = ("replace", "mask", "delete")
OF_ATTENTION = ("sign lost", "value killed", "heads cancel", "value typical", "replacement not neutral", "masking law")


def asked(model: Model, text: str) -> Disagreement:
    names = ["attention-mean", "gradient-x-input", "leave-one-out"]
    names += ["lime-exact", "shapley-exact"] if isinstance(model, PoolingModel) else []
    question = ask(model, [text])
    explanations = [run_explainer(configure(name, {}), question)[0] for name in names]
    return explain_disagreement(question, explanations, ABSENCES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="paper")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--reviews", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = heedful.load(options.model, options.device)
    texts = [example.text for example in Imdb().examples("test")]
    seen = np.random.default_rng(0).choice(len(texts), 100, replace=False)
    rest = np.setdiff1d(np.arange(len(texts)), seen)
    chosen = np.random.default_rng(1).choice(rest, options.reviews, replace=False)
    found: Counter[str] = Counter()
    of_texts: Counter[str] = Counter()
    tested: dict[tuple[str, str], np.ndarray] = {}
    n_words, widest_gap, like, unlike, spent = 0, 0.0, 0, 0, []
    correlations = []
    for index in chosen:
        started = perf_counter()
        one = asked(model, texts[index])
        spent.append(perf_counter() - started)
        passed, losses = one.evidence.passed, one.evidence.losses
        assert passed is not None
        n_words += len(one.words)
        found.update(cause.name for cause in one.causes if cause.unit is not None)
        of_texts.update({cause.name for cause in one.causes if cause.unit is None})
        for explanation in one.explanations:
            if explanation.signed:
                gap = np.abs(total(one.accounts[explanation.method]) - explanation.scores).max()
                widest_gap = max(widest_gap, float(gap))
        for test in reliability(passed, {absence: losses[absence] for absence in ABSENCES}):
            counts = tested.setdefault((test.cause, test.absence), np.zeros(4, dtype=int))
            counts += (test.behaved, test.diagnosed, test.others_behaved, test.others)
        slope = next(e.scores for e in one.explanations if e.method == "gradient-x-input")
        correlations.append([spearman(x, losses["replace"]) for x in (passed.attention, slope, passed.contribution)])
        if isinstance(model, SingleLayer):
            deep = asked(Transformer.of(model), texts[index])
            labels = [
                {(c.name, c.unit) for c in d.causes if c.name in OF_ATTENTION and c.unit is not None}
                for d in (one, deep)
            ]
            like, unlike = like + len(labels[0] & labels[1]), unlike + len(labels[0] ^ labels[1])
    print(f"{options.model}: {len(chosen)} reviews, {n_words:,} words; {1000 * np.median(spent):.0f} ms a review")
    print(f"terms sum to scores within {widest_gap:.1e}")
    attention, slope, contribution = np.nanmean(correlations, axis=0)
    print(f"mean rank correlation with leave-one-out (replaced): contribution {contribution:.2f}, ", end="")
    print(f"gradient × input {slope:.2f}, attention {attention:.2f}")
    print("\n| cause | words | texts |\n| --- | --- | --- |")
    for name in sorted({*found, *of_texts}):
        print(f"| {name} | {found[name]:,} | {of_texts[name]} |")
    print("\n| cause | absence | behaved so | others that stand out as much |\n| --- | --- | --- | --- |")
    for (name, absence), (behaved, n, others_behaved, others) in sorted(tested.items()):
        print(
            f"| {name} | {absence} | {behaved:,} of {n:,} = {behaved / max(n, 1):.0%} | "
            f"{others_behaved:,} of {others:,} = {others_behaved / max(others, 1):.0%} |"
        )
    if isinstance(model, SingleLayer):
        print(f"\ndiagnosed as if it were deep: {like:,} causes alike, {unlike} not")


if __name__ == "__main__":
    main()
