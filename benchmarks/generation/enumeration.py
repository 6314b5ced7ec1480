"""Every mask over the sources of a prompt, evaluated once: the log-probability of every output token on all 2ⁿ masks.

`python -m benchmarks.generation.enumeration CASES.json MODEL --absence replace --out FOLDER` writes one file per case
and skips those there.

Masks with the same first sources share what was read: the sources are the levels of a binary tree, and every node is
read once, with the cache of its parent. Needs torch, transformers and NumPy only.
"""

import argparse
import copy
import json
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, DynamicCache


@dataclass
class Branch:
    """Masks that are equal on the sources read so far, one row each."""

    cache: Any
    seen: Tensor
    """[row × token read] whether later tokens attend to it."""
    first: Tensor
    """[row] the log-probability of the first output token after what was read."""


@dataclass(frozen=True)
class Reader:
    """A network, the output that it is asked about, and how a source is removed."""

    network: Any
    output: Tensor
    replacement: int | None
    """The token that replaces removed ones; None deletes them, so that later tokens move up."""
    max_rows: int

    def read(self, branch: Branch, ids: Tensor, kept: Tensor) -> Branch:
        """Reads one chunk of tokens in every row; where it is not kept, its tokens were replaced or stay unseen."""
        seen = torch.cat([branch.seen, kept[:, None].expand(ids.shape)], dim=1)
        last = self._logits(branch.cache, ids, seen, 1)[:, -1].log_softmax(-1)[:, self.output[0]]
        return Branch(branch.cache, seen, torch.where(kept, last, branch.first))

    def write(self, branch: Branch) -> Tensor:
        """[row × output token] the log-probabilities by teacher forcing."""
        rest = self.output[1:]
        ids = self.output[:-1].expand(len(branch.seen), -1)
        seen = torch.cat([branch.seen, torch.ones_like(ids, dtype=torch.bool)], dim=1)
        logits = self._logits(branch.cache, ids, seen, ids.shape[1])
        normaliser = torch.stack([one.logsumexp(-1) for one in logits.unbind(1)], dim=1)
        chosen = logits.gather(2, rest.expand(len(ids), -1)[..., None])[..., 0]
        return torch.cat([branch.first[:, None], chosen - normaliser], dim=1)

    def _logits(self, cache: Any, ids: Tensor, seen: Tensor, n_last: int) -> Tensor:
        places = (seen.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        mask = {} if bool(seen.all()) else {"attention_mask": seen.long()}
        call = {"input_ids": ids, "position_ids": places, "past_key_values": cache, "logits_to_keep": n_last}
        return self.network(**call, **mask, use_cache=True).logits

    def descend(self, branch: Branch, chunks: list[tuple[int, list[int]]]) -> Tensor:
        """The values of every mask below a branch; the first source is the most significant bit, 1 is present."""
        for number, (source, tokens) in enumerate(chunks):
            if source >= 0 and len(branch.seen) * 2 > self.max_rows:
                halves = torch.arange(len(branch.seen), device=self.output.device).chunk(2)
                return torch.cat([self.descend(_rows(branch, half), chunks[number:]) for half in halves])
            ids = torch.tensor(tokens, device=self.output.device).expand(len(branch.seen), -1)
            kept = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
            if source >= 0:
                every = torch.arange(len(ids), device=ids.device).repeat_interleave(2)
                branch = _rows(branch, every)
                kept = torch.arange(len(every), device=ids.device) % 2 == 1
                ids = ids[every]
                if self.replacement is not None:
                    ids = torch.where(kept[:, None], ids, self.replacement)
                    kept = torch.ones_like(kept)
            branch = self.read(branch, ids, kept)
        return self.write(branch)


def _rows(branch: Branch, rows: Tensor) -> Branch:
    cache = copy.deepcopy(branch.cache)
    if cache.get_seq_length():
        cache.batch_select_indices(rows)
    return replace(branch, cache=cache, seen=branch.seen[rows], first=branch.first[rows])


def chunks_of(ids: list[int], sources: list[int]) -> list[tuple[int, list[int]]]:
    """The prompt as runs of tokens of one source; a source in several runs is refused."""
    chunks: list[tuple[int, list[int]]] = []
    for token, source in zip(ids, sources, strict=True):
        if not chunks or chunks[-1][0] != source:
            chunks.append((source, []))
        chunks[-1][1].append(token)
    order = [source for source, _ in chunks if source >= 0]
    if order != sorted(set(order)):
        raise ValueError(f"every source must be one run of tokens, in order; the runs are {order}")
    return chunks


@torch.inference_mode()
def enumerate_masks(
    network: Any, ids: list[int], sources: list[int], output: list[int], replacement: int | None, max_rows: int = 256
) -> np.ndarray:
    """[mask × output token] the log-probabilities; mask number m keeps source s if bit n − 1 − s of m is set."""
    reader = Reader(network, torch.tensor(output, device=network.device), replacement, max_rows)
    nothing = torch.zeros(1, 0, dtype=torch.bool, device=network.device)
    start = Branch(DynamicCache(), nothing, torch.full((1,), float("nan"), device=network.device, dtype=network.dtype))
    return reader.descend(start, chunks_of(ids, sources)).cpu().numpy()


def all_masks(n_sources: int) -> np.ndarray:
    """[mask × source] which sources each mask keeps, in the order of `enumerate_masks`."""
    return (np.arange(1 << n_sources)[:, None] >> np.arange(n_sources - 1, -1, -1) & 1).astype(bool)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path)
    parser.add_argument("model")
    parser.add_argument("--absence", choices=["replace", "delete"], default="replace")
    parser.add_argument("--replacement", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = AutoModelForCausalLM.from_pretrained(asked.model, dtype=torch.float32).eval().to(device)
    replacement = asked.replacement if asked.absence == "replace" else None
    asked.out.mkdir(parents=True, exist_ok=True)
    for number, case in enumerate(json.loads(asked.cases.read_text(encoding="utf-8"))):
        file = asked.out / f"{asked.cases.stem}-{asked.absence}-{number:02}.npy"
        if file.exists():
            continue
        start = perf_counter()
        values = enumerate_masks(network, case["ids"], case["sources"], case["output"], replacement, asked.rows)
        np.save(file.with_suffix(".part.npy"), values.astype(np.float32))
        file.with_suffix(".part.npy").rename(file)
        print(f"{file.name}: {len(values):,} masks in {perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
