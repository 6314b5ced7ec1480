"""What the published tests of attention said, beside what the classic models trained here say."""

from collections.abc import Iterable, Mapping, Sequence

from heedful.evaluation.probes.published import AGREEMENT, BAG, N_TRAIN, UNIFORM
from heedful.experiments.claim import CORRELATIONS, Cell, Claim, Numbers, agreement, claim_if, mean_over_seeds
from heedful.experiments.debate.corpora import CORPORA
from heedful.statistics.quantity import Quantity

_NEAR = 0.05
"""The largest difference from a published τ that counts as agreement."""
Row = Mapping[str, Cell]


def debate_claims(numbers: Numbers) -> list[Claim]:
    """Claims of agreement, accuracy, adversaries and deceived attention, corpus by corpus."""
    findings = numbers["findings"]
    return [
        *_agreement(numbers),
        *_accuracies(findings),
        *_guided(findings),
        *_deceived(findings),
        *_adversary(findings),
    ]


def chosen(rows: Sequence[Row], **cells: Cell) -> list[Row]:
    """The rows with these cells."""
    return [row for row in rows if all(row[name] == cell for name, cell in cells.items())]


def quantity(row: Row) -> Quantity:
    """The value of a row with its interval."""
    return Quantity(
        *(float("nan") if row[name] is None else float(row[name] or 0) for name in ("value", "low", "high"))
    )


def taus(numbers: Numbers, corpus: str, encoder: str, pair: str) -> list[Row]:
    """The rows of one τ: every start of the word vectors and every seed."""
    about = {"corpus": corpus, "encoder": encoder, "attention": "tanh", "probe": "agreement", "key": pair}
    return chosen(numbers["findings"], **about)


def _agreement(numbers: Numbers) -> Iterable[Claim]:
    for (corpus, encoder), pairs in AGREEMENT.items():
        for pair, published in pairs.items():
            rows = taus(numbers, corpus, encoder, pair)
            usual = [quantity(row).value for row in rows if row["word_scale"] == 0.1]
            what = f"{CORPORA[corpus].title}, {encoder}: Kendall's τ, {pair}"
            if not usual:
                yield Claim(what, f"{published:.3f}", "", "not measured", "This model was not trained in this run.")
                continue
            mean = mean_over_seeds(usual, CORRELATIONS)
            why = f"Within {_NEAR} of the mean of {len(usual)} trainings."
            yield claim_if(
                abs(mean.value - published) <= _NEAR,
                what,
                f"{published:.3f}",
                str(mean),
                why,
                _causes(numbers, corpus, encoder, pair, usual),
            )


def _causes(numbers: Numbers, corpus: str, encoder: str, pair: str, usual: Sequence[float]) -> str:
    """What τ depends on, as far as it was measured."""
    rows = taus(numbers, corpus, encoder, pair)
    scales = {float(row["word_scale"] or 0): quantity(row).value for row in rows if row["seed"] == 0}
    by_scale = ", ".join(f"{value:.2f} at {scale:g}" for scale, value in sorted(scales.items()))
    why = (
        f"The published models begin with word vectors trained elsewhere; τ depends on them: {by_scale} is the size of "
    )
    why += f"ours. Trainings with other seeds range from {min(usual):.2f} to {max(usual):.2f}."
    models = chosen(numbers["models"], corpus=corpus, encoder=encoder)
    n = int(models[0]["n_train"] or 0) if models else 0
    if n and n < 0.5 * N_TRAIN[corpus]:
        why += f" They train on {N_TRAIN[corpus]:,} texts, we on {n:,}."
    quarter = taus(numbers, f"{corpus}-quarter", encoder, pair)
    if quarter:
        why += f" On a quarter of the training texts τ is {quantity(quarter[0]).value:.2f}."
    return why


def _accuracies(findings: Sequence[Row]) -> Iterable[Claim]:
    rows = chosen(findings, probe="uniform-and-frozen")
    for corpus in dict.fromkeys(str(row["corpus"]) for row in rows):
        own = {str(row["key"]): quantity(row) for row in rows if row["corpus"] == corpus}
        title = CORPORA[corpus].title if corpus in CORPORA else corpus
        if corpus in UNIFORM:
            loss = UNIFORM[corpus][0] - UNIFORM[corpus][1]
            ours = own["lost with uniform"]
            verdict, why = agreement(loss, ours.value, (ours.low, ours.high))
            about = f"{title}: accuracy lost with uniform attention"
            yield Claim(about, f"{loss:.3f} (of F1)", f"{ours:.3f}", verdict, why)
        for name in ("learned", "uniform", "frozen"):
            ours = f"{own[name]:.3f}"
            why = f"The interval is over texts; over the trainings: {own[f'{name} over seeds']:.3f}."
            yield Claim(f"{title}: accuracy with {name} attention", "", ours, "new", why)


def _guided(findings: Sequence[Row]) -> Iterable[Claim]:
    rows = chosen(findings, probe="preset-attention")
    for corpus in dict.fromkeys(str(row["corpus"]) for row in rows if row["corpus"] in BAG):
        own = {str(row["key"]): quantity(row) for row in rows if row["corpus"] == corpus}
        gain, published = own["gain"], BAG[corpus]["this model's"] - BAG[corpus]["uniform"]
        yield claim_if(
            gain.low > 0,
            f"{CORPORA[corpus].title}: a bag of words gains from the BiLSTM's attention over uniform weights",
            f"{published:.3f} (of F1)",
            f"{gain:.3f}",
            "The interval of the gain is above 0.",
            "The interval of the gain is not above 0.",
        )


def _deceived(findings: Sequence[Row]) -> Iterable[Claim]:
    rows = chosen(findings, probe="deceived")
    for corpus in dict.fromkeys(str(row["corpus"]) for row in rows if row["corpus"] in CORPORA):
        own = {str(row["key"]): quantity(row) for row in rows if row["corpus"] == corpus}
        mass, lost = own["mass"], own["lost"]
        yield claim_if(
            mass.value < 0.01 and lost.value < 0.02,
            f"{CORPORA[corpus].title}: attention to chosen words can be trained away",
            "below 1 % of attention, less than 2 points of accuracy lost",
            f"{mass:.2%} of attention, {lost:.1%} lost",
            "Both are below.",
            "One of the two is not below.",
        )


def _adversary(findings: Sequence[Row]) -> Iterable[Claim]:
    rows = [row for row in chosen(findings, probe="adversarial", encoder="bilstm") if row["corpus"] in CORPORA]
    for row in (row for row in rows if row["key"] == "adversary" and row["attention"] == "tanh"):
        what = f"{CORPORA[str(row['corpus'])].title}: divergence of the strongest attention with the same output"
        why = f"Exact. Shuffled attention: {float(row['null'] or 0):.3f}; the largest possible: 0.693."
        yield Claim(what, "", f"{quantity(row):.3f}", "new", why)
