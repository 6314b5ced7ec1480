"""The figures of the published tests of attention."""

from typing import TYPE_CHECKING

from heedful.evaluation.probes.published import AGREEMENT, BAG, N_TRAIN, PAIRS, UNIFORM
from heedful.experiments.claim import Numbers
from heedful.experiments.debate.corpora import CORPORA, QUICK
from heedful.experiments.debate.probes_claims import chosen, quantity, taus
from heedful.experiments.figure import COLOURS, figure, quiet

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_ALL = {**CORPORA, **QUICK}
_SCALES = {0.1: COLOURS[0], 0.3: COLOURS[5], 1.0: COLOURS[2]}


def draw_agreement(numbers: Numbers) -> "Figure":
    """Kendall's τ of every training, by the size of the first word vectors, beside the published value."""
    trained = {
        (str(row["corpus"]), str(row["encoder"])): None for row in chosen(numbers["findings"], probe="agreement")
    }
    lines = [(*one, pair) for one in trained for pair in PAIRS if _has_line(*one, pair) and taus(numbers, *one, pair)]
    drawn = figure(7.0, 1.2 + 0.28 * len(lines))
    axes = quiet(drawn.add_subplot())
    for place, (corpus, encoder, pair) in enumerate(lines):
        for row in taus(numbers, corpus, encoder, pair):
            scale = float(row["word_scale"] or 0)
            label = f"ours, word vectors begin at {scale:g}"
            axes.plot(quantity(row).value, place, "o", color=_SCALES[scale], alpha=0.8, label=label)
        published = AGREEMENT.get((corpus, encoder), {}).get(pair)
        if published is not None:
            axes.plot([published - 0.05, published + 0.05], [place, place], color=COLOURS[1], linewidth=1)
            axes.plot(published, place, "D", color=COLOURS[1], label="published ± 0.05")
    titles = [f"{_ALL[corpus].title}, {encoder}: {pair}" for corpus, encoder, pair in lines]
    axes.set_yticks(range(len(lines)), titles, size=8)
    axes.set(xlabel="Kendall's τ", xlim=(-0.1, 1), ylim=(len(lines) - 0.5, -0.5))
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    drawn.legend(handles.values(), handles.keys(), frameon=False, fontsize=8, ncols=2, loc="outside upper center")
    return drawn


def _has_line(corpus: str, encoder: str, pair: str) -> bool:
    """Published values, and corpora that have none."""
    return corpus not in N_TRAIN or pair in AGREEMENT.get((corpus, encoder), {})


def draw_accuracies(numbers: Numbers) -> "Figure":
    """Accuracy with learned, uniform and frozen attention, and of a bag of words with pre-set attention."""
    probes = {
        "uniform-and-frozen": ("learned", "uniform", "frozen"),
        "preset-attention": ("uniform", "its own, learned", "this model's"),
    }
    corpora = [*dict.fromkeys(str(row["corpus"]) for row in chosen(numbers["findings"], probe="preset-attention"))]
    drawn = figure(2.4 * max(2, len(corpora)), 3.4)
    for number, corpus in enumerate(corpora):
        axes, names = quiet(drawn.add_subplot(1, len(corpora), number + 1)), []
        for probe, keys in probes.items():
            for key in keys:
                for row in chosen(numbers["findings"], corpus=corpus, probe=probe, key=key):
                    value = quantity(row)
                    ends = [[value.value - value.low], [value.high - value.value]]
                    colour = COLOURS[0 if probe == "uniform-and-frozen" else 2]
                    axes.errorbar([len(names)], [value.value], yerr=ends, fmt="o", color=colour)
                    names.append(key if probe == "uniform-and-frozen" else f"bag, {key}")
        if corpus in UNIFORM:
            published = dict(zip(("learned", "uniform"), UNIFORM[corpus], strict=True))
            published |= {f"bag, {key}": value for key, value in BAG.get(corpus, {}).items()}
            places = [(place, published[name]) for place, name in enumerate(names) if name in published]
            axes.plot(*zip(*places, strict=True), "D", color=COLOURS[1], markersize=4)
        axes.set_xticks(range(len(names)), names, rotation=90, size=8)
        axes.set_title(f"{_ALL[corpus].title}, accuracy", size=9)
    return drawn
