"""`train`: a dictionary of a layer of a model, from texts, of which some are held out to measure it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from heedful.datasets.texts import Texts, content_of, places_by_hash, texts_in
from heedful.errors import BadInput
from heedful.family import check_count
from heedful.features.activations import find_site, middle_layer
from heedful.features.cached import CachedSource, cache
from heedful.features.card import Card
from heedful.features.dictionary import Dictionary
from heedful.features.fitting import check_rows, choose
from heedful.features.source import ArraySource, Source
from heedful.features.splice import labels_at, measure_texts
from heedful.features.text_source import TextSource
from heedful.features.training import ChunkResult, TrainingPlan, train_on
from heedful.models import Model, check_model
from heedful.models.fingerprint import own_fingerprint
from heedful.models.load import load
from heedful.progress import Progress, progress_of, say, show_progress
from heedful.run_folder import RunFolder, path_of

_N_PASSES, _FEWEST_ROWS, _MOST_ROWS = 10, 500_000, 4_000_000
_MOST_HELD_OUT = 300
_IN_MEMORY = 1 << 28
"""Bytes of activations that are kept, so that the model reads the texts once."""
_NEAR = 1.25
"""A number of active features that differs from k by more than this factor is announced."""


def train_dictionary(
    model: Model | str | Path,
    layer: int | None,
    texts: Any,
    width: int,
    kind: str = "matryoshka",
    *,
    part: str = "residual",
    seed: int = 0,
    n_held_out: int | None = None,
    text: str | None = None,
    label: Any = None,
    activations: str | Path | None = None,
    out: str | Path | None = None,
    progress: Progress | bool | None = show_progress,
    announce: Callable[[str], None] = say,
    command: str = "",
    **settings: object,
) -> Dictionary:
    """Trains a dictionary of `width` features on what a model computes at one layer, and measures it on other texts.

    `layer` None is the middle one. `texts` are a list, a table or file with columns `text` and `label`, or the name of
    a data set, whose training split is read. `n_held_out` different texts are chosen by a hash, with their copies: by
    default a tenth, at most 300. No row of them is in the training, and the metrics on them are in the card.

    Settings are those of `fit`. `n_rows` is by default ten passes over the texts, 500,000 to 4,000,000 rows.
    Activations of up to 256 MB are kept in memory. More are computed again in every pass, unless `activations` names a
    folder: they are written there once, as `cache` writes them. With `out`, a folder, a stopped run resumes with the
    same call, to the same bytes. `announce` is called with sentences: what is read, the results after every tenth of
    the run, and the metrics.
    """
    choose(kind, width, 1, {**settings, "seed": seed})  # it refuses wrong names and numbers before texts are read
    folders = [_usable(activations), _usable(out)]
    opened = load(str(model), str(settings.get("device", "cpu"))) if isinstance(model, str | Path) else model
    place = check_layer(opened, layer, part)
    parts = hold_out(opened, texts_in(texts, "train", text, label), n_held_out)
    name = Path(model).name if isinstance(model, str | Path) else ""
    with progress_of(progress, "rows") as watch:
        run = _TextTraining(opened, parts, TextSource(opened, place, parts.training, part, seed), watch, announce)
        return run.train(Card(kind, command=command, model_name=name), width, settings, *folders)


def _usable(folder: str | Path | None) -> Path | None:
    if folder is None:
        return None
    path = path_of(folder)
    RunFolder(path).check_usable()
    return path


@final
@dataclass(frozen=True, eq=False)
class SplitTexts:
    """Texts for the training, and others that are held out, with their labels as classes of the model."""

    name: str
    training: tuple[Any, ...]
    held_out: tuple[Any, ...]
    labels: list[int] | None


@final
@dataclass(frozen=True, eq=False)
class _TextTraining:
    """The training on texts of a model."""

    model: Model
    parts: SplitTexts
    source: TextSource
    watch: Progress
    announce: Callable[[str], None]

    def train(
        self,
        card: Card,
        width: int,
        settings: Mapping[str, Any],
        activations: Path | None,
        out: Path | None,
    ) -> Dictionary:
        source, site = self.source, self.source.site
        # It refuses texts without words before anything is trained.
        held = TextSource(self.model, site.layer, self.parts.held_out, site.part)
        check_rows(source.n_rows, width, "texts")
        n_rows = min(_MOST_ROWS, max(_FEWEST_ROWS, _N_PASSES * source.n_rows))
        kind, plan = choose(card.kind, width, source.d_e, {"n_rows": n_rows, **settings, "seed": source.seed})
        data = f"{self.parts.name}, {source.data}; held out: {held.data}. {source.left_out}".strip()
        origin = {**source.origin, "model_name": card.model_name or source.origin["model_name"]}
        card = replace(card, data=data, **origin)
        self.announce(f"{card.place[0].upper()}{card.place[1:]}: {data}")
        chunks = self._in_chunks(plan, activations)
        tell = self._tenths(chunks.rows_a_chunk, plan.n_rows)
        return train_on(chunks, kind, width, plan, card, out, self.watch, tell, self._measured)

    def _in_chunks(self, plan: TrainingPlan, folder: Path | None) -> Source:
        """The source, its rows kept in memory if they fit, or in a folder."""
        source = self.source
        if folder is None:
            source.rows_a_chunk = plan.rows_a_chunk
            if 4 * source.d_e * source.n_rows > _IN_MEMORY:
                return source
            return ArraySource(source.everything, source.seed, plan.rows_a_chunk, source.about, source.origin)
        kept = RunFolder(folder).settings() or {}
        # A folder of `cache` is taken as it was written.
        usual = {"dtype": "float32", "seed": source.seed, "rows_a_shard": 65_536}
        own = {name: kept.get(name, value) for name, value in usual.items()}
        place = (self.model, source.site.layer, self.parts.training, folder, source.site.part)
        cache(*place, **own, progress=self.watch)
        return CachedSource(folder, source.seed, plan.rows_a_chunk)

    def _tenths(self, rows_a_chunk: int, n_rows: int) -> Callable[[ChunkResult], None]:
        """A function that announces the results of a chunk where it ends a tenth of the training."""
        n_chunks = -(-n_rows // rows_a_chunk)

        def tell(result: ChunkResult) -> None:
            done = result.number + 1
            if done * 10 // n_chunks > result.number * 10 // n_chunks:
                self.announce(f"{done * rows_a_chunk:,} of {n_chunks * rows_a_chunk:,} rows: {result.summary}")

        return tell

    def _measured(self, dictionary: Dictionary) -> Dictionary:
        """The dictionary with the metrics on the held-out texts in its card."""
        bound = dictionary.bound(self.model)
        quality = measure_texts(bound, self.parts.held_out, self.parts.labels, watch=self.watch)
        self.announce(f"Held out: {quality.summary}")
        settings = dictionary.card.settings
        asked = None if settings.get("penalty_of") == "count" else settings.get("k")
        if asked is not None and not asked / _NEAR <= quality.l0.value <= asked * _NEAR:
            self.announce(f"{quality.l0.value:.3g} features are active per row, and k is {asked:g}: train longer.")
        return replace(bound, card=replace(bound.card, metrics=quality.as_dict()))


def hold_out(model: Model, texts: Texts, n_held_out: int | None = None) -> SplitTexts:
    """Holds out some texts by their hashes, with their copies: by default a tenth of all, at most 300."""
    n = len({content_of(text) for text in texts.texts})
    if n < 2:
        raise BadInput(f"At least 2 different texts are needed, since some are held out, not {n}.")
    most = min(_MOST_HELD_OUT, max(1, n // 10)) if n_held_out is None else n_held_out
    check_count("The number of different texts that are held out", most, 1, n - 1)
    places = places_by_hash(texts.texts, most)
    chosen = {*places}
    training = tuple(text for place, text in enumerate(texts.texts) if place not in chosen)
    held_out = tuple(texts.texts[place] for place in places)
    return SplitTexts(texts.name, training, held_out, labels_at(model, texts, places))


def check_layer(model: Model, layer: int | None, part: str) -> int:
    """The number of a layer that the model has; of None the middle one."""
    check_model(model)
    chosen = middle_layer(model, part) if layer is None else layer
    find_site(model, part, chosen)
    if own_fingerprint(model) != model.fingerprint:
        raise BadInput("The model computes something else at present; leave the context that changes it.")
    return chosen
