"""Runs the reliability cases: python -m benchmarks.reliability [--only KIND,…] [--n N] [--jobs N] [--seed N]

    make fuzz                                                        every kind at its full size, in runs/fuzz
    python -m benchmarks.reliability --n 100                         100 cases of every kind
    python -m benchmarks.reliability --only files --case 17          one case alone, with its traceback
    python -m benchmarks.reliability --table docs/reliability.md     the table of the last run, into the page

A stopped run resumes. The exit code is 1 if there is a fault.
"""

import argparse
import json
import os
import random
import sys
from dataclasses import asdict
from pathlib import Path

# Before torch is imported: the processes share the cores, and a process with threads must not be forked.
os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}

from benchmarks.reliability.calls import Calls
from benchmarks.reliability.case import Kind
from benchmarks.reliability.commands import Commands
from benchmarks.reliability.files import Files
from benchmarks.reliability.kills import Kills
from benchmarks.reliability.pool import Journal, run_kind, source_hash
from benchmarks.reliability.report import as_text, summarise, write_table


def kinds() -> dict[str, Kind]:
    """Every kind of case, at the size of a full run."""
    every: tuple[Kind, ...] = (
        Calls("paper", "paper", 100_000, n_long=300, n_chunk=500),
        Calls("toxicity", "toxicity", 5_000, n_long=200, n_chunk=100),
        Calls("stories15m", "stories15m", 2_000, n_long=60, n_chunk=20),
        Commands(),
        Files(),
        Kills(),
    )
    return {kind.name: kind for kind in every}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="kinds, separated by commas")
    parser.add_argument("--n", type=int, help="the number of cases of every kind; default: the full size of each")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this case alone")
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz"))
    parser.add_argument("--table", type=Path, metavar="PAGE", help="write the table of the last run into a page")
    options = parser.parse_args()
    if options.table is not None:
        write_table(options.table, options.out / "summary.json")
        return
    every = kinds()
    names = options.only.split(",") if options.only else list(every)
    if unknown := [name for name in names if name not in every]:
        parser.error(f"there is no kind {unknown[0]!r}; known: {', '.join(every)}")
    if options.case is not None:
        run_alone(every[names[0]], options.seed, options.case)
        return
    n_faults = run_all([every[name] for name in names], options)
    sys.exit(1 if n_faults else 0)


def run_alone(kind: Kind, seed: int, number: int) -> None:
    """Runs one case and lets its error through."""
    kind.prepare()
    case = kind.case(random.Random(f"{seed} {kind.name} {number}"), number)
    print(case.call.encode("utf-8", "backslashreplace").decode(), flush=True)
    print(case.run())


def run_all(every: list[Kind], options: argparse.Namespace) -> int:
    """Runs the kinds one after the other, writes summary.json after each, and gives the number of faults."""
    summary_file, source = options.out / "summary.json", source_hash()
    kept = json.loads(summary_file.read_text(encoding="utf-8")) if summary_file.exists() else {}
    results = kept["kinds"] if kept.get("source") == source and kept.get("seed") == options.seed else {}
    n_faults = 0
    for kind in every:
        if reason := kind.missing():
            print(f"{kind.name} is skipped: {reason}", flush=True)
            continue
        n = options.n or kind.n
        journal = Journal(options.out / f"{kind.name}.jsonl", options.seed, source)
        chunks = run_kind(
            kind, n, options.seed, options.jobs, journal, lambda done, n=n, kind=kind: _watch(kind, done, n)
        )
        summary = summarise(kind, chunks, options.seed)
        print(as_text(kind.name, summary), flush=True)
        n_faults += summary.n_faults
        results[kind.name] = asdict(summary)
        summary_file.parent.mkdir(parents=True, exist_ok=True)
        content = {"seed": options.seed, "source": source, "kinds": results}
        summary_file.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    return n_faults


def _watch(kind: Kind, done: int, n: int) -> None:
    print(f"{kind.name}: {done:,} of {n:,}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
