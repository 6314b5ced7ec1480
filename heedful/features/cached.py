"""Activations on disk: safetensors shards that are made once, and read back in bounded memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from torch import Tensor

from heedful.datasets.texts import texts_in
from heedful.errors import BadInput, unknown_name
from heedful.family import check_seed
from heedful.features.source import Source, stretches
from heedful.features.text_source import TextSource
from heedful.models import Model
from heedful.models.training_loop import shuffled
from heedful.progress import Progress, progress_of, show_progress
from heedful.run_folder import RunFolder, path_of, read_tensors, write_tensors

_FORMAT = "heedful/activations/1"
_DTYPES = ("float32", "bfloat16")


def cache(
    model: Model,
    layer: int,
    texts: Any,
    folder: str | Path,
    part: str = "residual",
    *,
    dtype: str = "float32",
    seed: int = 0,
    rows_a_shard: int = 65_536,
    progress: Progress | bool | None = show_progress,
) -> "CachedSource":
    """Writes the activations of texts at one layer to a folder, for any number of trainings.

    `texts` are a list, a table or file with a column `text`, or the name of a data set, whose training split is read.
    The same call resumes where it was stopped, and makes nothing again once it is finished; another model, layer or
    text is refused. Every shard holds texts in random order. `bfloat16` halves the space and keeps 8 bits of precision.
    """
    if dtype not in _DTYPES:
        raise unknown_name("dtype", dtype, _DTYPES)
    run = RunFolder(path_of(folder))
    source = TextSource(model, layer, texts_in(texts, "train", label=False).texts, part, seed, rows_a_shard)
    n = source.n_rows
    settings = {
        "format": _FORMAT,
        **source.origin,
        "data": source.data,
        "n_rows": n,
        "d_e": source.d_e,
        "left_out": source.left_out,
    }
    with run.alone(), progress_of(progress, "rows") as watch:
        run.claim({**settings, "dtype": dtype, "seed": seed, "rows_a_shard": rows_a_shard})
        for number, start in enumerate(range(0, n, rows_a_shard)):
            path, end = _shard(run.path, number), min(n, start + rows_a_shard)
            if not path.exists():
                write_tensors(path, {"rows": source.rows(0, start, end).to(getattr(torch, dtype))}, {})
            watch(end, n)
    return CachedSource(folder, seed)


@final
class CachedSource(Source):
    """Activations that `cache` wrote: the shards in another order in every pass, rows shuffled in shard and chunk.

    In memory are a chunk, three times while it is put together, and one shard.
    """

    def __init__(self, folder: str | Path, seed: int = 0, rows_a_chunk: int = 65_536, device: str = "cpu") -> None:
        check_seed(seed)
        self.folder, self.seed, self.device = path_of(folder), seed, device
        settings = RunFolder(self.folder).settings()
        if settings is None or settings.get("format") != _FORMAT:
            raise BadInput(f"{folder} contains no activations; write some with heedful.features.cache.")
        self.n_rows, self.d_e = int(settings["n_rows"]), int(settings["d_e"])
        self._starts = range(0, self.n_rows, int(settings["rows_a_shard"]))
        n_missing = sum(not _shard(self.folder, number).exists() for number in range(len(self._starts)))
        if n_missing:
            n = f"{n_missing:,} of {len(self._starts):,}"
            raise BadInput(f"{n} shards are missing in {folder}; call heedful.features.cache again.")
        self.rows_a_chunk, self.left_out = rows_a_chunk, str(settings["left_out"])
        self.origin: Mapping[str, Any] = {name: settings[name] for name in ("model", "model_name", "part", "layer")}
        place = f"{settings['part']} {settings['layer']} of {settings['model']}, {settings['dtype']}"
        order = f"shards of {self._starts.step:,} {settings['seed']}, {self.rows_a_chunk:,} a chunk, seed {seed}"
        self.about = f"{settings['data']}, {place}, {order}"
        self._last: tuple[int, Tensor] = (-1, torch.empty(0))

    def chunk(self, number: int) -> Float[Tensor, "row d_e"]:
        """Rows of the next shards, on the source's device."""
        first = number * self.rows_a_chunk
        parts = [self._rows(*some) for some in stretches(first, first + self.rows_a_chunk, self.n_rows)]
        rows = torch.cat([part for some in parts for part in some])
        return rows[shuffled(len(rows), self.seed, number)].to(self.device, torch.float32)

    def _rows(self, number: int, start: int, end: int) -> list[Tensor]:
        """Some rows of a pass, shard by shard."""
        parts, place = [], 0
        for shard in shuffled(len(self._starts), self.seed, number).tolist():
            n = min(self._starts.step, self.n_rows - self._starts[shard])
            if start < place + n and place < end:
                order = shuffled(n, self.seed, number * len(self._starts) + shard)
                parts.append(self._read(shard, n)[order[max(0, start - place) : end - place]])
            place += n
        return parts

    def _read(self, shard: int, n: int) -> Float[Tensor, "row d_e"]:
        """The rows of a shard; the last one is kept, since the next chunk may go on in it."""
        if self._last[0] != shard:
            path = _shard(self.folder, shard)
            try:
                rows = read_tensors(path)[0]["rows"]
                if len(rows) != n:
                    raise ValueError
            except (SafetensorError, ValueError, KeyError, OSError):
                raise BadInput(f"{path} is damaged; delete it, and call heedful.features.cache again.") from None
            self._last = shard, rows
        return self._last[1]


def _shard(folder: Path, number: int) -> Path:
    return folder / "shards" / f"{number:05d}.safetensors"
