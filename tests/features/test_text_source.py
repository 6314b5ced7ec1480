import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.features import text_source
from heedful.features.activations import find_site, text_rows
from heedful.features.text_source import TextSource
from tests.families import TEXTS, build, network_of
from tests.features.test_activations import LINES, inputs_for


def test_texts_without_words_are_refused():
    model = build("bert")
    with pytest.raises(BadInput, match="no tokens but special ones"):
        text_rows(model, [model.encode("")], find_site(model, "residual", 0))
    with pytest.raises(BadInput, match="no tokens but special ones"):
        TextSource(model, 0, ["", " "])


@pytest.mark.parametrize("texts", ["a text", []])
def test_anything_but_a_list_of_texts_is_refused(texts):
    with pytest.raises(BadInput, match="give a list of at least one"):
        TextSource(build("bert"), 0, texts)


def test_layers_that_run_more_than_once_are_refused_as_a_source():
    with pytest.raises(Unsupported, match="do not run once each"):
        TextSource(build("albert"), 0, TEXTS)


@pytest.mark.parametrize("family", ["bert", "t5", "vit", "encoder"])
def test_chunks_pass_over_every_row_in_random_order(family):
    model, lines = build(family), inputs_for(family)
    every = text_rows(model, [model.encode(line) for line in lines], find_site(model, "residual", 1)).x
    n = len(every)
    source = TextSource(model, 1, lines, seed=3, rows_a_chunk=n - 4)
    chunks = [source.chunk(number) for number in range(n)]
    distance, nearest = torch.cdist(torch.cat(chunks).double(), every.double()).min(dim=1)
    assert source.n_rows == n
    assert {len(chunk) for chunk in chunks} == {source.rows_a_chunk} == {n - 4}
    assert distance.max() < 1e-4
    # n chunks of n − 4 rows are n − 4 passes.
    assert nearest.bincount().tolist() == [n - 4] * n
    assert nearest[:n].tolist() != sorted(nearest[:n].tolist())


def test_texts_that_fit_into_one_chunk_are_read_once(monkeypatch):
    source = TextSource(build("gpt2"), 1, LINES, rows_a_chunk=100)
    parts = TextSource(build("gpt2"), 1, LINES, rows_a_chunk=source.n_rows - 1)
    everything = torch.cat([parts.rows(0, 0, 20), parts.rows(0, 20, parts.n_rows)]).double()
    chunk = source.chunk(0)
    monkeypatch.setattr(text_source, "text_rows", None)
    assert len(chunk) == len(source.chunk(1)) == 100
    assert torch.cdist(source.chunk(1).double(), everything).min(dim=1).values.max() < 1e-5
    assert torch.cdist(everything, chunk.double()).min(dim=1).values.max() < 1e-5


def test_a_chunk_depends_on_its_number_alone():
    sources = [TextSource(build("gpt2"), 1, LINES, seed=seed, rows_a_chunk=20) for seed in (0, 0, 1)]
    first = [sources[0].chunk(number) for number in (0, 1, 2)]
    again = [sources[1].chunk(number) for number in (2, 0, 1)]
    assert all(torch.equal(a, b) for a, b in zip(first, (again[1], again[2], again[0]), strict=True))
    assert not torch.equal(first[0], sources[2].chunk(0))
    assert not torch.equal(first[0], first[1])


def test_the_description_of_a_source_tells_data_apart():
    other = heedful.wrap(network_of("gpt2")[0].eval(), network_of("gpt2")[1])
    sources = [
        TextSource(build("gpt2"), 1, LINES),
        TextSource(other, 1, LINES),
        TextSource(build("gpt2"), 2, LINES),
        TextSource(build("gpt2"), 1, LINES[1:]),
        TextSource(build("gpt2"), 1, LINES, "mlp"),
        TextSource(build("gpt2"), 1, LINES, seed=1),
        TextSource(build("gpt2"), 1, LINES, rows_a_chunk=9),
    ]
    assert len({source.about for source in sources}) == len(sources)
    assert TextSource(build("gpt2"), 1, LINES).about == sources[0].about
    assert sources[0].origin == {
        "model": build("gpt2").fingerprint,
        "model_name": "GPT2LMHeadModel",
        "part": "residual",
        "layer": 1,
    }


def test_what_was_left_out_is_said():
    model = build("bert")
    source = TextSource(model, 0, [*LINES, "good " * 100])
    assert (source.n_special, source.n_truncated) == (2 * (len(LINES) + 1), 1)
    assert source.left_out == "Left out: special tokens (16), ends of texts above the model's limit (1)."
    assert TextSource(build("gpt2"), 0, TEXTS).left_out == ""


def test_special_tokens_that_are_written_out_are_counted_as_left_out():
    source = TextSource(build("bert"), 0, ["a [SEP] good film"])
    assert (source.n_rows, source.n_special) == (3, 3)
