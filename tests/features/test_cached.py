import pandas
import pytest
import torch

import heedful
from heedful.datasets.texts import texts_of
from heedful.errors import BadInput, CannotWrite, HeedfulError
from heedful.features import cached
from heedful.features.cached import CachedSource, cache
from heedful.features.from_texts import hold_out
from heedful.features.text_source import TextSource
from tests.families import build
from tests.features.test_activations import LINES
from tests.test_run_folder import full_disk

SHARD = 9


def written(folder, **changes):
    settings = {"model": build("gpt2"), "layer": 1, "texts": LINES, "rows_a_shard": SHARD, **changes}
    return cache(folder=folder, progress=None, **settings)


def shards(folder):
    return sorted((folder / "shards").iterdir())


def stored(folder):
    return {path.name: path.read_bytes() for path in (*shards(folder), folder / "settings.json")}


def sorted_rows(x):
    return sorted(x.tolist())


@pytest.mark.parametrize("part", ["residual", "mlp"])
def test_a_cache_has_the_rows_of_its_texts(tmp_path, part):
    source, texts = written(tmp_path, part=part), TextSource(build("gpt2"), 1, LINES, part, rows_a_chunk=SHARD)
    everything = torch.cat(
        [texts.rows(0, start, min(start + SHARD, texts.n_rows)) for start in range(0, texts.n_rows, SHARD)]
    )
    assert len(shards(tmp_path)) == -(-texts.n_rows // SHARD)
    assert (source.n_rows, source.d_e, source.left_out) == (texts.n_rows, texts.d_e, "")
    assert source.origin == texts.origin
    whole = CachedSource(tmp_path, rows_a_chunk=texts.n_rows)
    for number in (0, 1):
        assert sorted_rows(whole.chunk(number)) == sorted_rows(everything)


def test_a_dictionary_is_trained_on_a_cache_and_its_card_names_the_layer(tmp_path):
    written(tmp_path, part="mlp")
    dictionary = heedful.features.fit(tmp_path, width=8, n_rows=70_000, progress=None)
    assert dictionary.d_e == 16
    card = dictionary.card
    assert (card.model, card.part, card.layer) == (build("gpt2").fingerprint, "mlp", 1)
    assert heedful.features.cache is cache


def test_chunks_pass_over_every_row_in_random_order_whatever_their_size(tmp_path):
    n = written(tmp_path).n_rows
    once = sorted_rows(CachedSource(tmp_path, rows_a_chunk=n).chunk(0))
    for size in (1, SHARD - 2, SHARD, 2 * SHARD + 1):
        source = CachedSource(tmp_path, seed=5, rows_a_chunk=size)
        rows = torch.cat([source.chunk(number) for number in range(2 * n)])
        assert sorted_rows(rows) == sorted(2 * size * once)
        assert not torch.equal(rows[:n], rows[n : 2 * n])


def test_a_chunk_depends_on_its_number_alone(tmp_path):
    written(tmp_path)
    one, two, other = (CachedSource(tmp_path, seed, rows_a_chunk=7) for seed in (0, 0, 1))
    first = [one.chunk(number) for number in (0, 4, 9)]
    again = [two.chunk(number) for number in (9, 4, 0)]
    assert all(torch.equal(a, b) for a, b in zip(first, reversed(again), strict=True))
    assert not torch.equal(first[0], other.chunk(0))
    assert len({one.about, other.about, CachedSource(tmp_path, rows_a_chunk=8).about}) == 3


def test_bfloat16_halves_the_file_and_rounds_the_rows(tmp_path):
    whole, half = (written(tmp_path / dtype, dtype=dtype) for dtype in ("float32", "bfloat16"))
    assert torch.equal(half.chunk(0), whole.chunk(0).bfloat16().float())
    sizes = [sum(len(content) for content in stored(tmp_path / dtype).values()) for dtype in ("float32", "bfloat16")]
    assert sizes[1] < sizes[0]


def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    written(tmp_path / "whole")
    write, n_written = cached.write_tensors, 0

    def killed(path, tensors, metadata):
        nonlocal n_written
        n_written += 1
        if n_written == 3:
            raise KeyboardInterrupt
        write(path, tensors, metadata)

    monkeypatch.setattr(cached, "write_tensors", killed)
    with pytest.raises(KeyboardInterrupt):
        written(tmp_path / "killed")
    assert len(shards(tmp_path / "killed")) == 2
    with pytest.raises(BadInput, match="3 of 5 shards are missing"):
        CachedSource(tmp_path / "killed")
    n_written = 10
    written(tmp_path / "killed")
    assert n_written == 13
    assert stored(tmp_path / "killed") == stored(tmp_path / "whole")


def test_a_finished_cache_is_used_again(tmp_path, monkeypatch):
    first = written(tmp_path).chunk(0)
    monkeypatch.setattr(cached, "write_tensors", None)
    assert torch.equal(written(tmp_path).chunk(0), first)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"layer": 2}, "layer"),
        ({"texts": LINES[1:]}, "data"),
        ({"model": build("llama")}, "model"),
        ({"dtype": "bfloat16"}, "dtype"),
    ],
)
def test_other_activations_in_the_folder_are_refused(tmp_path, change, name):
    written(tmp_path)
    before = stored(tmp_path)
    with pytest.raises(BadInput, match=f"another run, which differs in .*{name}"):
        written(tmp_path, **change)
    assert stored(tmp_path) == before


def test_a_full_disk_is_a_sentence_and_the_run_goes_on_later(tmp_path):
    with full_disk(1500), pytest.raises(CannotWrite, match="00000.safetensors cannot be written"):
        written(tmp_path / "full", rows_a_shard=40)
    assert shards(tmp_path / "full") == []
    assert torch.equal(
        written(tmp_path / "full", rows_a_shard=40).chunk(0), written(tmp_path / "whole", rows_a_shard=40).chunk(0)
    )


def test_a_damaged_shard_is_named_and_made_again_once_it_is_deleted(tmp_path):
    expected = written(tmp_path).chunk(0)
    path = shards(tmp_path)[1]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"00001.safetensors is damaged; delete it"):
        CachedSource(tmp_path).chunk(0)
    path.unlink()
    with pytest.raises(BadInput, match="1 of 5 shards are missing"):
        CachedSource(tmp_path)
    assert torch.equal(written(tmp_path).chunk(0), expected)


def test_a_table_and_a_file_are_read_by_their_texts(tmp_path):
    model = build("gpt2")
    (tmp_path / "texts.csv").write_text("text,label\n" + "".join(f'"{line}",1\n' for line in LINES))
    own = heedful.features.cache(model, 1, LINES, tmp_path / "list", progress=None)
    for number, given in enumerate((pandas.DataFrame({"text": LINES}), tmp_path / "texts.csv")):
        other = heedful.features.cache(model, 1, given, tmp_path / str(number), progress=None)
        assert sorted_rows(other.chunk(0)[: other.n_rows]) == sorted_rows(own.chunk(0)[: own.n_rows])


def test_a_training_takes_a_folder_as_it_was_written(tmp_path):
    parts = hold_out(build("gpt2"), texts_of(LINES), 2)
    heedful.features.cache(build("gpt2"), 1, parts.training, tmp_path, rows_a_shard=7, seed=3, progress=None)
    before = stored(tmp_path)
    heedful.features.train(
        build("gpt2"), 1, LINES, 8, "topk", k=2, n_held_out=2, n_rows=100, activations=tmp_path, progress=None
    )
    assert stored(tmp_path) == before


def test_a_folder_of_something_else_and_an_unknown_dtype_are_refused(tmp_path):
    with pytest.raises(BadInput, match="contains no activations"):
        CachedSource(tmp_path)
    with pytest.raises(HeedfulError, match="no dtype 'float16'"):
        written(tmp_path, dtype="float16")


def test_fewer_rows_than_features_are_refused(tmp_path):
    n = written(tmp_path).n_rows
    with pytest.raises(BadInput, match=f"{n + 1:,} features need at least as many rows of activations, not {n:,}"):
        heedful.features.fit(tmp_path, n + 1, progress=None)
