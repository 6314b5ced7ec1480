"""Which words of every text a method finds strongest, computed once and kept."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt16
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import heedful
from heedful.errors import BadInput
from heedful.explanation import Explanation
from heedful.models.single_layer import SingleLayer
from heedful.perturb.masks import generator
from heedful.run_folder import write_atomically

Ranks = UInt16[np.ndarray, "batch word"]
"""The place of every word of every text, 0 the strongest; NOWHERE behind a text's last word."""
Mapper = Callable[[Callable[[Sequence[str]], Ranks], Iterable[Sequence[str]]], Iterable[Ranks]]
NOWHERE = np.iinfo(np.uint16).max
_CHUNK = 512


def ranks_of(explanations: Iterable[Explanation], n_places: int) -> Ranks:
    """Places by falling |score|; lots of the text decide between equal scores, so that no position is favoured."""
    rows = []
    for explanation in explanations:
        lots = generator(0, explanation.document).random(len(explanation.scores))
        row = np.full(n_places, NOWHERE, dtype=np.uint16)
        row[np.lexsort((lots, -np.abs(explanation.scores)))] = np.arange(len(lots))
        rows.append(row)
    return np.stack(rows)


def rank_texts(
    model: str, method: str, texts: Sequence[str], over: Mapper, watch: Callable[[int], None] = lambda _: None
) -> Ranks:
    """The ranks of all texts, by `over`, which `mapping` gives; `watch` is called with the number done.

    What is explained is the second class against the first: its scores change their sign and not their size with the
    class that is asked for, so that the ranking does not tell which class the model predicted.
    """
    chunks = [texts[start : start + _CHUNK] for start in range(0, len(texts), _CHUNK)]
    found: list[Ranks] = []
    for ranks in over(partial(_rank_chunk, model, method), chunks):
        found.append(ranks)
        watch(sum(map(len, found)))
    return np.concatenate(found)


@contextmanager
def mapping(n_workers: int) -> Iterator[Mapper]:
    """A `map` over processes, or within this one; always on one thread each, since more may round otherwise."""
    if n_workers > 1:
        with ProcessPoolExecutor(n_workers, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
            yield pool.map
        return
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield map
    finally:
        torch.set_num_threads(n_threads)


def keep_ranks(path: Path, ranks: Ranks, settings: str) -> None:
    """Writes the ranks, with the settings that they depend on."""
    write_atomically(path, lambda temporary: save_file({"ranks": ranks}, temporary, {"settings": settings}))


def kept_ranks(path: Path, settings: str) -> Ranks | None:
    """What was kept under these settings; None if nothing was."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="np") as file:
            ranks, metadata = file.get_tensor("ranks"), file.metadata() or {}
    except SafetensorError as error:
        raise BadInput(f"{path} is damaged; delete it to rank the words again.") from error
    if metadata.get("settings") != settings:
        raise BadInput(f"{path} ranks the words of another model, method or data; name another folder or delete it.")
    return ranks


def _rank_chunk(model: str, method: str, texts: Sequence[str]) -> Ranks:
    loaded = _loaded(model)
    explanations = heedful.explain(loaded, list(texts), method, target=1, against=0)
    return ranks_of(explanations, loaded.network.config.T_max - 1)


@cache
def _loaded(model: str) -> SingleLayer:
    loaded = heedful.load(model)
    assert isinstance(loaded, SingleLayer)
    return loaded
