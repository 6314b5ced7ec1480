import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, UnknownName
from heedful.features.fitting import choose, fit
from heedful.features.source import ArraySource
from heedful.features.training import TrainingPlan
from tests.features.sparse_rows import sparse_rows
from tests.features.test_training import Counted, tree

FAST = {"n_rows": 3000, "batch_size": 100, "progress": None}


def test_fit_finds_the_directions_that_rows_are_made_of():
    rows, directions = sparse_rows(20_000, d_e=16, n_features=20)
    dictionary = fit(rows, 20, "topk", k=2, n_rows=60_000, batch_size=100, learning_rate=3e-3, progress=None)
    nearest = (directions @ dictionary.directions.T).max(axis=1)
    assert np.median(nearest) > 0.95
    assert dictionary.width == 20
    assert dictionary.card.kind == "topk"


def test_an_array_a_list_and_a_tensor_give_the_same_dictionary():
    rows, _ = sparse_rows(300)
    given = (rows, rows.numpy(), rows.tolist())
    fingerprints = {fit(some, 10, k=2, **FAST).fingerprint for some in given}
    assert len(fingerprints) == 1


def test_no_more_rows_are_taken_than_were_asked_for():
    rows, _ = sparse_rows(300)
    for n_rows, batch_size, taken in ((2000, 100, 2000), (50, 100, 50), (1990, 100, 2000), (1101, 100, 1200)):
        totals = []
        settings = {"n_rows": n_rows, "batch_size": batch_size}
        dictionary = fit(rows, 10, k=2, progress=lambda done, total, to=totals: to.append((done, total)), **settings)
        assert totals[-1] == (taken, taken)
        assert dictionary.card.n_rows == taken


def test_a_run_has_ten_chunks_of_whole_batches_or_more():
    for n_rows, batch_size in ((200_000, 1_024), (4_000_000, 1_024), (120_000, 1_000), (10_000_000, 4_096)):
        size = TrainingPlan(n_rows, batch_size).rows_a_chunk
        assert size % batch_size == 0
        assert size <= 65_536
        assert -(-n_rows // size) >= 10
    assert TrainingPlan(1_000, 200_000).rows_a_chunk == 1_000


def test_a_batch_of_one_row_does_not_move_the_threshold():
    rows, _ = sparse_rows(4_000)
    l0 = []
    for n in (2_048, 2_049):
        dictionary = fit(ArraySource(rows, 0, n), 16, "batchtopk", k=2.0, n_rows=n, batch_size=1_024, progress=False)
        l0.append(float((dictionary.encode(rows) > 0).sum(dim=1).float().mean()))
    assert l0 == pytest.approx([2, 2], abs=0.1)


def test_a_source_may_be_given_in_place_of_an_array():
    assert fit(Counted(), 10, k=2, **FAST).card.data == Counted().about


@pytest.mark.parametrize(("d_e", "width", "k"), [(768, 4096, 32), (64, 4096, 16), (3, 100, 1), (768, 8, 8)])
def test_k_is_by_default_32_or_a_quarter_of_the_dimensions(d_e, width, k):
    assert choose("matryoshka", width, d_e, {})[0].k == k
    assert choose("matryoshka", width, d_e, {"k": 5})[0].k == 5


def test_settings_go_to_the_kind_and_to_the_training():
    kind, plan = choose("jumprelu", 100, 64, {"sparsity": 0.5, "learning_rate": "1e-2", "device": "cpu"})
    assert kind.sparsity == 0.5
    assert plan.learning_rate == 0.01


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"kind": "batch-top-k"}, "There is no kind of autoencoder 'batch-top-k'; did you mean 'batchtopk'?"),
        ({"width": 0}, "The width must be a whole number of at least 1; 0 was given"),
        ({"width": True}, "at least 1; True was given"),
        ({"width": 400}, "400 features need at least as many rows of activations, not 300. Give more rows,"),
        ({"k": 11}, "k must be above 0 and at most the width, 10; 11 was given"),
        ({"k": "many"}, "k must be a number; 'many' was given"),
        ({"lr": 1}, "There is no setting 'lr'"),
        ({"learning_rat": 1}, "did you mean 'learning_rate'?"),
        ({"kind": "matryoshka", "sparsity": 3.0}, "matryoshka has no setting 'sparsity'; only jumprelu and relu have."),
        ({"batch_size": 0}, "batch_size must be above 0"),
        ({"revive": -1.0}, "revive must be a number of at least 0; -1.0 was given"),
        ({"seed": -1}, "The seed must be a whole number"),
        ({"activations": np.full((300, 4), np.nan)}, "300 of 300 rows of activations are not finite numbers"),
        ({"activations": np.zeros(300)}, r"rows × dimensions; one of shape (300,) was given"),
        ({"activations": "text"}, "text contains no activations"),
        ({"activations": 1e25 * np.eye(300, 4)}, "All rows of activations are too large for single precision"),
        ({"activations": np.ones((300, 4))}, "All rows of activations are equal, so there is nothing to learn"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(BadInput) as error:
        fit(**{"activations": sparse_rows(300)[0], "width": 10, **FAST, **call})
    assert sentence in str(error.value)
    assert len(str(error.value)) < 900


def test_a_misspelt_kind_is_an_unknown_name():
    with pytest.raises(UnknownName):
        fit(sparse_rows(300)[0], 10, "jumprulu", **FAST)


def test_with_a_folder_a_run_resumes_and_the_dictionary_is_kept(tmp_path):
    rows, _ = sparse_rows(300)
    dictionary = fit(rows, 10, k=2, out=tmp_path / "run", **FAST)
    files = tree(tmp_path / "run")
    assert set(files) == {"card.md", "dictionary.safetensors", "settings.json", "state.safetensors"}
    assert fit(rows, 10, k=2, out=tmp_path / "run", **FAST).fingerprint == dictionary.fingerprint
    assert tree(tmp_path / "run") == files
    assert heedful.features.load(tmp_path / "run").fingerprint == dictionary.fingerprint
    with pytest.raises(BadInput, match="contains another run, which differs in source"):
        fit(rows + 1, 10, k=2, out=tmp_path / "run", **FAST)
    with pytest.raises(BadInput, match="contains another run, which differs in settings"):
        fit(rows, 10, k=3, out=tmp_path / "run", **FAST)
    assert tree(tmp_path / "run") == files


def test_a_fitted_dictionary_reads_rows_in_their_own_units():
    rows, _ = sparse_rows(4000)
    dictionary = fit(50 * rows, 24, "topk", k=2, n_rows=40_000, batch_size=100, learning_rate=3e-3, progress=None)
    left = 50 * rows - dictionary.decode(dictionary.encode(50 * rows))
    assert float(left.square().sum()) < 0.2 * float((50 * (rows - rows.mean(dim=0))).square().sum())
    assert torch.equal((dictionary.encode(50 * rows) > 0).sum(dim=1).amax(), torch.tensor(2))
