"""The table of docs/theorem-5-1.md: how far Theorem 5.1 is from LIME on real reviews. Needs HEEDFUL_DATA or the hub."""

import numpy as np

import heedful
from heedful.datasets.imdb import Imdb

N_REVIEWS, N_RUNS, MOST_WORDS = 30, 5, 140


def main() -> None:
    model = heedful.load("paper")
    short = [e.text for e in Imdb().examples("test") if model.encode(e.text).n_units("word") <= MOST_WORDS]
    chosen = np.random.default_rng(0).choice(len(short), N_REVIEWS, replace=False)
    asked = {"target": 1, "unit": "type"}
    print("| | against LIME with replacement | against LIME with deletion |\n| --- | --- | --- |")
    runs = {
        absence: [
            [heedful.explain(model, short[i], "lime", absence=absence, seed=s, **asked).scores for s in range(N_RUNS)]
            for i in chosen
        ]
        for absence in ("replace", "delete")
    }
    for form in ("printed", "corrected"):
        cells = []
        for absence in ("replace", "delete"):
            gaps = [
                np.linalg.norm(heedful.explain(model, short[i], "lime-theorem", form=form, **asked).scores - mean)
                for i, mean in zip(chosen, (np.mean(scores, axis=0) for scores in runs[absence]), strict=True)
            ]
            cells.append(f"{np.mean(gaps):.3f} ± {np.std(gaps, ddof=1):.3f}")
        print(f"| Theorem 5.1, {form} | {' | '.join(cells)} |")
    noise = [
        f"{np.mean([np.linalg.norm(np.std(scores, axis=0, ddof=1)) for scores in runs[absence]]):.3f}"
        for absence in ("replace", "delete")
    ]
    size = [
        f"{np.mean([np.linalg.norm(np.mean(scores, axis=0)) for scores in runs[absence]]):.3f}"
        for absence in ("replace", "delete")
    ]
    print(
        f"| one LIME run's own noise | {' | '.join(noise)} |\n| the length of LIME's explanation | {' | '.join(size)} |"
    )


if __name__ == "__main__":
    main()
