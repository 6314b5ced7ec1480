import errno
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful import run_folder
from heedful.errors import BadInput, CannotWrite
from heedful.features.autoencoder import kinds
from heedful.features.autoencoder.batchtopk import BatchTopK
from heedful.features.autoencoder.jumprelu import JumpRelu
from heedful.features.autoencoder.matryoshka import Matryoshka
from heedful.features.autoencoder.topk import RowTopK
from heedful.features.card import Card
from heedful.features.source import ArraySource, Source
from heedful.features.training import ChunkResult, TrainingPlan, first_weights, train_on
from heedful.run_folder import read_tensors
from tests.features.sparse_rows import sparse_rows
from tests.test_run_folder import full_disk

PLAN = TrainingPlan(n_rows=3000, batch_size=100, dead_after=500)
KIND = Matryoshka(k=2.0)


def source(n=3000, seed=0):
    return ArraySource(sparse_rows(n)[0], seed, rows_a_chunk=1000)


def trained(folder=None, kind=KIND, plan=PLAN, width=24, **calls):
    return train_on(calls.pop("source", None) or source(), kind, width, plan, Card(kind.name), folder, **calls)


@pytest.mark.parametrize("kind", [Matryoshka(k=2.0), BatchTopK(k=2.0), Matryoshka(k=2.0, passes=2)], ids=str)
def test_k_features_are_active_on_average_even_after_a_short_training(kind):
    active = trained(kind=kind).encode(sparse_rows(2000)[0].numpy())
    assert (active > 0).sum(axis=1).mean() == pytest.approx(2, abs=0.15)


def test_a_learning_rate_rises_stays_and_falls():
    plan = TrainingPlan(learning_rate=2.0, warmup=0.1, decay=0.4)
    rates = [plan.rate(share) for share in (0.05, 0.1, 0.3, 0.6, 0.8, 1.0)]
    np.testing.assert_allclose(rates, [1.0, 2.0, 2.0, 2.0, 1.0, 0.0], atol=1e-12)
    assert TrainingPlan(learning_rate=2.0, warmup=0.0, decay=0.0).rate(0.0) == 2.0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_rows": 0}, "n_rows must be above 0; 0 was given"),
        ({"batch_size": -1}, "batch_size must be above 0; -1 was given"),
        ({"learning_rate": float("nan")}, "learning_rate must be above 0; nan was given"),
        ({"dead_after": 0}, "dead_after must be above 0"),
        ({"warmup": 0.5, "decay": 0.6}, "shares of the steps that sum to at most 1"),
        ({"weight_decay": -1.0}, "weight_decay is at least 0"),
        ({"seed": -1}, "The seed must be a whole number ≥ 0; -1 was given"),
        ({"device": "abacus"}, "This machine has no device 'abacus'"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(settings, sentence):
    with pytest.raises(BadInput, match=sentence):
        TrainingPlan(**settings)


def test_a_run_begins_with_random_directions_and_the_mean():
    mean = torch.arange(6.0)
    for kind, length in ((RowTopK(), 1.0), (RowTopK(norms="free"), 0.1)):
        weights = first_weights(kind, 9, mean, seed=4)
        torch.testing.assert_close(weights.W_dec.norm(dim=1), torch.full((9,), length))
        assert torch.equal(weights.W_enc, weights.W_dec)
        assert torch.equal(weights.b_dec, mean)
        assert not torch.equal(weights.W_dec, first_weights(kind, 9, mean, seed=5).W_dec)


@pytest.mark.parametrize("name", sorted(kinds()))
def test_every_kind_learns(name):
    results = []
    kind = replace(kinds()[name](), **({} if name == "relu" else {"k": 2 if name == "topk" else 2.0}))
    dictionary = trained(kind=kind, plan=replace(PLAN, n_rows=20_000, learning_rate=3e-3), finished=results.append)
    assert results[-1].explained_variance > 0.1
    assert results[-1].loss < results[1].loss
    assert dictionary.card.kind == name
    torch.testing.assert_close(dictionary.W_dec.norm(dim=1), torch.ones(24))


def test_the_scale_of_the_activations_does_not_matter():
    rows, _ = sparse_rows(3000)
    small, large = (trained(source=ArraySource(scale * rows, 0, 1000)) for scale in (1.0, 64.0))
    # 64 is a power of two, so that even the rounding is the same.
    assert torch.equal(small.W_dec, large.W_dec)
    torch.testing.assert_close(64 * small.encode(rows), large.encode(64 * rows))


def test_the_same_call_gives_the_same_bytes_and_another_seed_others(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        trained(tmp_path / name, plan=replace(PLAN, seed=seed))
    a, b, c = ((tmp_path / name / "dictionary.safetensors").read_bytes() for name in "abc")
    assert a == b != c


def test_it_is_measured_on_a_pass_after_those_of_the_training():
    dictionary = trained()
    rows = torch.cat([source().chunk(number) for number in range(3, 3 + len(source().rows) // 1000)])
    active = dictionary.encode(rows)
    torch.testing.assert_close(dictionary.largest, active.amax(dim=0))
    torch.testing.assert_close(dictionary.density, (active > 0).float().mean(dim=0))


def test_the_card_says_how_it_was_trained():
    plan = replace(PLAN, seed=7)
    card = trained(plan=plan, kind=RowTopK(k=2)).card
    assert (card.kind, card.seed, card.n_rows) == ("topk", 7, 3000)
    assert card.settings["k"] == 2
    assert card.settings["batch_size"] == 100
    assert "seed" not in card.settings


def test_every_chunk_is_reported_with_the_numbers_that_matter():
    results, steps = [], []
    trained(kind=RowTopK(k=2), finished=results.append, watch=lambda done, total: steps.append((done, total)))
    assert [result.number for result in results] == [0, 1, 2]
    assert results[0].loss > results[-1].loss > 0
    assert results[-1].l0 == 2
    assert steps[0] == (100, 3000)
    assert steps[-1] == (3000, 3000)
    assert ChunkResult(0, 1.23456, 2.0, 0.5, 0.1).summary == (
        "loss 1.235, 2.0 active features per row, explained variance 0.500, 10.0% dead"
    )


class Counted(Source):
    """A source that counts the chunks it gives, and raises KeyboardInterrupt at one."""

    def __init__(self, stop_at=None):
        self.inner, self.stop_at, self.numbers = source(), stop_at, []
        self.d_e, self.rows_a_chunk, self.about = self.inner.d_e, self.inner.rows_a_chunk, self.inner.about
        self.n_rows = self.inner.n_rows

    def chunk(self, number):
        if number == self.stop_at:
            raise KeyboardInterrupt
        self.numbers.append(number)
        return self.inner.chunk(number)


def test_a_stopped_run_resumes_at_its_last_chunk_with_the_same_bytes(tmp_path):
    trained(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "stopped", source=Counted(stop_at=2))
    resumed = Counted()
    trained(tmp_path / "stopped", source=resumed)
    # The first chunk gives the mean and the scale; a pass behind the third is what it is measured on.
    assert resumed.numbers == [0, 2, 3, 4, 5]
    assert tree(tmp_path / "whole") == tree(tmp_path / "stopped")
    once_more = Counted()
    trained(tmp_path / "stopped", source=once_more)
    assert once_more.numbers == [0, 3, 4, 5]
    assert tree(tmp_path / "whole") == tree(tmp_path / "stopped")


def tree(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_dead_features_stay_counted_when_a_run_resumes(tmp_path):
    kind = RowTopK(k=1, revive=0.0)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, kind=kind, source=Counted(stop_at=2))
    tensors, _ = read_tensors(tmp_path / "state.safetensors")
    assert tensors["now.quiet"].max() >= 500


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"plan": replace(PLAN, seed=1)}, r"plan \(seed\)"),
        ({"kind": JumpRelu(k=2.0)}, r"kind \('matryoshka' there, 'jumprelu' here\), settings \(bandwidth, .*\)"),
        ({"width": 20}, r"width \(24 there, 20 here\)"),
        ({"source": ArraySource(sparse_rows(2000)[0], 0, 1000)}, "source"),
    ],
)
def test_a_folder_of_another_run_is_refused_and_left_as_it_is(tmp_path, change, named):
    trained(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(BadInput, match=f"contains another run, which differs in {named}; choose another folder"):
        trained(tmp_path, **change)
    assert tree(tmp_path) == before


def test_a_damaged_state_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, source=Counted(stop_at=2))
    path = tmp_path / "state.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BadInput, match=r"state.safetensors is damaged; delete it to train from the start"):
        trained(tmp_path)
    path.unlink()
    trained(tmp_path)


def test_a_full_disk_is_one_sentence_and_nothing_is_lost(tmp_path):
    trained(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "run", source=Counted(stop_at=2))
    before = tree(tmp_path / "run")
    with full_disk(2000), pytest.raises(CannotWrite, match="cannot be written"):
        trained(tmp_path / "run")
    assert tree(tmp_path / "run") == before
    trained(tmp_path / "run")
    assert tree(tmp_path / "run") == tree(tmp_path / "whole")


class Refusing:
    """Fails at the n-th write of a file, as the system does."""

    def __init__(self, number, reason):
        self.left, self.reason = number, reason

    def __call__(self, path, content):
        self.left -= 1
        if not self.left:
            raise OSError(self.reason, os.strerror(self.reason))
        FILL(path, content)


FILL = run_folder._fill


def test_a_write_that_fails_at_any_moment_is_one_sentence_and_the_run_resumes(tmp_path, monkeypatch):
    trained(tmp_path / "whole")
    # The settings, a state for each of three chunks, the dictionary and its card.
    for number, reason in [(4, errno.EROFS), *((number, errno.ENOSPC) for number in range(1, 7))]:
        run = tmp_path / f"{number} {reason}"
        with monkeypatch.context() as patch:
            patch.setattr(run_folder, "_fill", Refusing(number, reason))
            with pytest.raises(CannotWrite, match=f"cannot be written: {os.strerror(reason)}") as error:
                trained(run)
        assert "\n" not in str(error.value)
        resumed = Counted()
        trained(run, source=resumed)
        # Chunks whose state was written are not trained on again.
        assert resumed.numbers == [0, *range(min(3, max(0, number - 2)), 3), 3, 4, 5]
        assert tree(run) == tree(tmp_path / "whole")


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(CannotWrite, match="run cannot be used as a folder: Not a directory"):
        trained(tmp_path / "file" / "run")


class Broken(Counted):
    """The same rows, of which one in the second chunk is not a number."""

    def chunk(self, number):
        rows = super().chunk(number).clone()
        if number == 1:
            rows[17, 3] = torch.nan
        return rows


def test_activations_that_are_not_numbers_stop_the_run_and_keep_what_was_done(tmp_path):
    with pytest.raises(BadInput, match="1 of 1,000 rows of activations are not finite numbers, the first is row 17"):
        trained(tmp_path, source=Broken())
    assert (tmp_path / "state.safetensors").exists()
    trained(tmp_path)


def test_rows_that_are_all_equal_are_refused():
    with pytest.raises(BadInput, match="All rows of activations are equal"):
        trained(source=ArraySource(torch.ones(50, 16), 0, 50))


def test_a_loss_that_is_no_number_is_a_sentence():
    with pytest.raises(BadInput, match="loss is not a finite number"):
        trained(plan=replace(PLAN, learning_rate=1e30), kind=RowTopK(k=2, norms="free"))


BEGIN = """
import os, sys
from pathlib import Path
from tests.features.test_training import trained
while line := sys.stdin.readline():
    process = os.fork()
    if not process:
        trained(Path(line.strip()))
        os._exit(0)
    print(process, flush=True)
    sys.stdin.readline()
    os.waitpid(process, 0)
    print("ended", flush=True)
"""
"""Trains in every folder that it reads, in a process of its own. It prints its number, and waits once it is told to."""


@pytest.mark.slow
def test_killed_at_ten_random_moments_it_ends_with_the_same_bytes(tmp_path):
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1"}
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": surroundings}
    with subprocess.Popen([sys.executable, "-c", BEGIN], **streams) as starter:

        def run(folder, seconds=None):
            """The seconds that a run took, which may be killed after some."""
            print(folder, file=starter.stdin, flush=True)
            process, begin = int(starter.stdout.readline()), time.monotonic()
            if seconds is not None:
                time.sleep(seconds)
                os.kill(process, signal.SIGKILL)
            print("wait", file=starter.stdin, flush=True)
            assert starter.stdout.readline() == "ended\n"
            return time.monotonic() - begin

        whole, rng = run(tmp_path / "whole"), random.Random(0)
        for _ in range(10):
            run(tmp_path / "killed", rng.uniform(0, whole / 3))
        run(tmp_path / "killed")
        starter.stdin.close()
    assert tree(tmp_path / "killed") == tree(tmp_path / "whole")
    assert heedful.features.load(tmp_path / "killed").card.n_rows == 3000
