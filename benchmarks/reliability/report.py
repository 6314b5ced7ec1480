"""The results of a run: faults in groups, a summary in JSON, and the table of docs/reliability.md."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from benchmarks.reliability.case import Fault, Kind
from benchmarks.reliability.pool import Chunk

_SHOWN = 3
BEFORE: Mapping[str, str] = {
    "calls-paper": "70 faults in 7,131 cases on three models",
    "calls-toxicity": "(in the row above)",
    "calls-stories15m": "(in the row above)",
    "commands": "5 tracebacks in 138 command lines",
    "files": "172 of 220 flipped bits of checkpoints accepted, 0 tracebacks in 300; 6 edited explanations accepted, "
    "16 failed later",
    "kills": "20 of 20 equal except timings and names; a full disk ended in a traceback and destroyed the old file",
}
"""What an earlier, separate test of the same parts measured; its cases were others."""
_TABLE = re.compile(r"(<!-- table -->\n).*?(<!-- end of table -->)", re.DOTALL)


@final
@dataclass(frozen=True)
class Summary:
    """The counts of one kind. `groups` maps a group of faults to its size and its first reproductions."""

    title: str
    n: int
    n_success: int
    n_refused: int
    n_faults: int
    cases_per_cpu_second: float
    groups: Mapping[str, Mapping[str, Any]]


def summarise(kind: Kind, chunks: Sequence[Chunk], seed: int) -> Summary:
    """The counts of a kind, and its faults by group, the largest group first."""
    groups: dict[str, list[Fault]] = defaultdict(list)
    for chunk in chunks:
        for fault in chunk.faults:
            groups[fault.group].append(fault)
    seconds, n = sum(chunk.seconds for chunk in chunks), sum(chunk.n for chunk in chunks)
    return Summary(
        title=kind.title,
        n=n,
        n_success=sum(chunk.n_success for chunk in chunks),
        n_refused=sum(chunk.n_refused for chunk in chunks),
        n_faults=sum(len(chunk.faults) for chunk in chunks),
        cases_per_cpu_second=round(n / seconds, 2) if seconds else 0.0,
        groups={
            group: {"n": len(faults), "first": [_reproduction(fault, seed) for fault in faults[:_SHOWN]]}
            for group, faults in sorted(groups.items(), key=lambda item: -len(item[1]))
        },
    )


def _reproduction(fault: Fault, seed: int) -> dict[str, str]:
    return {"run": fault.command(seed), "call": fault.call, "detail": fault.detail}


def as_text(name: str, summary: Summary) -> str:
    """The summary of a kind for the terminal, with one reproduction per group."""
    lines = [
        f"{name}: {summary.n:,} cases, {summary.n_success:,} succeeded, {summary.n_refused:,} were refused, "
        f"{summary.n_faults:,} faults; {summary.cases_per_cpu_second:g} cases per second of a core"
    ]
    for group, entry in summary.groups.items():
        first = entry["first"][0]
        lines += [f"  {entry['n']:>5} × {group}", f"          {first['detail']}"]
        lines += [f"          {first['call']}", f"          {first['run']}"]
    return "\n".join(lines)


def as_table(summaries: Mapping[str, Mapping[str, Any]]) -> str:
    """The Markdown table of the page: before, and after."""
    rows = [
        "| part | before | after: cases | succeeded | refused in one sentence | faults |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name, before in BEFORE.items():
        summary = summaries.get(name)
        counts = ["not run"] + [""] * 3
        if summary is not None:
            counts = [f"{summary[key]:,}" for key in ("n", "n_success", "n_refused", "n_faults")]
            counts[-1] = f"**{counts[-1]}**"
        title = name if summary is None else summary["title"]
        rows.append(f"| {title} | {before} | {' | '.join(counts)} |")
    return "\n".join(rows)


def write_table(page: Path, summary_file: Path) -> None:
    """Puts the table of a run into the page, between its two marks."""
    summaries = json.loads(summary_file.read_text(encoding="utf-8"))["kinds"]
    text = page.read_text(encoding="utf-8")
    if not _TABLE.search(text):
        raise ValueError(f"{page} has no place for the table.")
    page.write_text(_TABLE.sub(lambda marks: f"{marks[1]}{as_table(summaries)}\n{marks[2]}", text), encoding="utf-8")
