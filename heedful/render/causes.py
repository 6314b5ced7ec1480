"""Why methods differ, in a few lines and as tables."""

from html import escape

import numpy as np

from heedful.evaluation.disagreement import Cause, Disagreement, Pair
from heedful.evaluation.disagreement.accounts import TERMS, Terms, total
from heedful.evaluation.disagreement.causes import TERM_OF
from heedful.evaluation.disagreement.reliability import EXPECTED
from heedful.render.text_strip import visible

_WORDS, _OF_A_CAUSE = 3, 6


def lines(found: Disagreement) -> list[str]:
    """At most five lines: the units that methods see most differently, and what holds for the whole text."""
    said = [f"Why they differ ({'exact' if found.exact else 'a diagnostic, not a proof'}):"]
    for pair in found.widest(_WORDS):
        (unit,) = pair.units
        strengths = [
            f"{strength:+.0%} by {method}"
            for strength, method in zip(unit.strengths, (pair.one, pair.other), strict=True)
        ]
        said.append(f"  {visible(unit.word)}: {', '.join(strengths)}; {found.reason(unit)}")
    if len(said) == 1 and not found.causes:
        return []
    tested = "; ".join(str(one) for one in found.reliability[:2])
    of_text = [
        f"{cause.name}: {cause.sentence}" for cause in found.causes if cause.name == "saturation" and cause.unit is None
    ]
    return [*said, *(f"  {line}" for line in [*of_text, *([f"{tested}."] if tested else [])][:1])]


def section(found: Disagreement) -> str:
    """The tables of a report."""
    what = (
        "These are the model's own numbers: scores are sums of the terms below, to rounding. They describe; where two "
        "methods differ neither need be wrong, they answer different questions."
        if found.exact
        else "A diagnostic, not a proof: it is taken from attention and the gradient there, to the first order, and "
        "does not see what else the layers do."
    )
    tested = "".join(f"<li>{escape(str(one))} ({escape(EXPECTED[one.cause])}).</li>" for one in found.reliability)
    if tested:
        tested = f"<p>When units were taken out, and for comparison others that stand out as much:</p><ul>{tested}</ul>"
    notes = "".join(f"<p>{escape(note)}</p>" for note in found.notes)
    tables = [_causes(found), _accounts(found), _pairs(found)]
    return f"<p>{what}</p>{tested}{notes}{''.join(tables)}"


def _causes(found: Disagreement) -> str:
    if not found.causes:
        return "<p>No cause is above its threshold.</p>"
    by_name = {name: [cause for cause in found.causes if cause.name == name] for name in TERM_OF}
    rows = "".join(_row(cause) for some in by_name.values() for cause in some[:_OF_A_CAUSE])
    rest = ", ".join(f"{name} {len(some) - _OF_A_CAUSE}" for name, some in by_name.items() if len(some) > _OF_A_CAUSE)
    more = f"<p>Not shown, smaller: {rest}; the .json report has all.</p>" if rest else ""
    return (
        '<div class="wide"><table class="loose"><thead><tr><th>unit<th>cause<th>size<th>what happens<th>numbers</tr>'
        f"</thead><tbody>{rows}</tbody></table></div>{more}"
    )


def _row(cause: Cause) -> str:
    numbers = ", ".join(f"{name} {value:+.3g}" for name, value in cause.numbers.items())
    word = "the text" if cause.unit is None and not cause.word else visible(cause.word)
    return (
        f'<tr><th scope=row dir="auto"><bdi>{escape(word)}</bdi><td>{escape(cause.name)}'
        f"<td class=number>{cause.size:.3g}<td>{escape(visible(cause.sentence))}<td>{escape(numbers)}</tr>"
    )


def _accounts(found: Disagreement) -> str:
    """One table a way of going on from attention: to what is lost when a unit goes, and to gradient × input."""
    chosen: dict[tuple[str, ...], str] = {}
    for method in found.representatives:
        chosen.setdefault(tuple(found.accounts[method]), method)
    longest = [
        (method, found.accounts[method])
        for names, method in chosen.items()
        if len(names) > 1 and not any(set(names) < set(others) for others in chosen)
    ]
    return "".join(_account(found.words, method, terms) for method, terms in longest)


def _account(words: tuple[str, ...], method: str, terms: Terms) -> str:
    head = "".join(f'<th title="{escape(TERMS[name])}">{escape(name)}' for name in terms)
    scores = total(terms)
    rows = []
    for unit in np.argsort(-np.abs(scores), kind="stable").tolist():
        cells = "".join(f"<td class=number>{term[unit]:+.3g}" for term in [*terms.values(), scores])
        rows.append(f'<tr><th scope=row dir="auto"><bdi>{escape(visible(words[unit]))}</bdi>{cells}</tr>')
    return (
        f"<details><summary>From attention to {escape(method)}, term by term</summary>"
        f'<div class="wide"><table><thead><tr><th>unit{head}<th>= {escape(method)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _pairs(found: Disagreement) -> str:
    """Pairs of one method of each kind, the lowest rank correlation first."""
    kinds = set(found.representatives)
    known = [pair for pair in found.accounted if {pair.one, pair.other} <= kinds and pair.units]
    lowest = sorted(known, key=lambda pair: np.nan_to_num(pair.correlation, nan=2.0))
    if not lowest:
        return ""
    rows = "".join(_of_pair(found, pair) for pair in lowest)
    return (
        "<p>Methods of different kinds, those that rank units most differently first; the units that lower the "
        "correlation most, with their places, their part in it and the largest term between the two scores:</p>"
        f'<div class="wide"><table class="loose"><thead><tr><th>methods<th>ρ<th>units</tr></thead><tbody>{rows}</tbody>'
        "</table></div>"
    )


def _of_pair(found: Disagreement, pair: Pair) -> str:
    units = "<br>".join(
        f"<bdi>{escape(visible(unit.word))}</bdi> {unit.places[0]:g} and {unit.places[1]:g}, {unit.share:.0%}: "
        f"{escape(found.reason(unit))}"
        for unit in pair.units
    )
    names = f"{escape(pair.one)}, {escape(pair.other)}"
    return f"<tr><th scope=row>{names}<td class=number>{pair.correlation:+.2f}<td>{units}</tr>"
