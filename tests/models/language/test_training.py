from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from heedful.errors import BadInput
from heedful.models.language.card import publish_gpt2
from heedful.models.language.gpt2 import Gpt2Config, initial_gpt2
from heedful.models.language.training import Gpt2Recipe, TokenStream, fit_gpt2, measure_losses, train_gpt2
from heedful.run_folder import RunFolder
from tests.models.test_training import Killed, Pairs, Toy

TINY = Gpt2Config(n_tokens=20, T_max=8, d_e=8, depth=1, n_heads=2, d_hidden=16)
QUICK = Gpt2Recipe(learning_rate=1e-2, batch_size=16, n_epochs=3, dropout=0.1)
END = 19


def counting(n, seed):
    """Texts that count on: after a token comes the next one."""
    rng = np.random.default_rng(seed)
    return [(np.arange(length) + rng.integers(19)) % 19 for length in rng.integers(2, 30, n)]


def trained(recipe, path=None):
    network = initial_gpt2(TINY, 0)
    epochs = fit_gpt2(network, TokenStream.of(counting(200, 0), END), counting(20, 1), recipe, path)
    return network, epochs


def test_the_stream_has_the_end_before_every_text():
    stream = TokenStream.of([np.array([1, 2]), np.array([3])], END)
    assert stream.ids.tolist() == [END, 1, 2, END, 3]
    assert stream.starts.tolist() == [0, 3]


def test_half_of_the_windows_begin_with_a_text():
    stream = TokenStream.of(counting(400, 0), END)
    windows = stream.windows(8, 0, 0)
    begin = np.isin(windows.numpy(), stream.starts.numpy())
    assert 0.45 < begin.mean() < 0.65
    assert torch.equal(windows, stream.windows(8, 0, 0))
    assert not torch.equal(windows, stream.windows(8, 0, 1))
    assert int(windows.max()) + 8 < len(stream.ids)


def test_it_learns_to_count():
    network, epochs = trained(replace(QUICK, n_epochs=12, dropout=0.0))
    assert epochs[-1].held_out_loss < 0.6 * epochs[0].held_out_loss
    assert int(network(torch.tensor([[END, 3, 4, 5]]))[0, -1].argmax()) == 6
    assert epochs[-1].perplexity == pytest.approx(np.exp(epochs[-1].held_out_loss))


def test_a_killed_run_resumes_with_the_same_weights(tmp_path):
    whole, epochs = trained(QUICK)

    def kill(epoch, batch, n_batches):
        if (epoch, batch) == (1, 2):
            raise KeyboardInterrupt

    network = initial_gpt2(TINY, 0)
    stream, held, path = TokenStream.of(counting(200, 0), END), counting(20, 1), tmp_path / "state.safetensors"
    with pytest.raises(KeyboardInterrupt):
        fit_gpt2(network, stream, held, QUICK, path, kill)
    again, resumed = trained(QUICK, path)
    assert resumed == epochs
    for one, other in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


@torch.no_grad()
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 13, 30])
def test_losses_are_those_of_every_token_from_what_is_before_it(length):
    network, text = initial_gpt2(TINY, 0), (np.arange(length) * 5) % 19
    whole = [END, *text.tolist(), END]
    expected = 0.0
    for t in range(1, len(whole)):
        # Windows of T_max tokens begin every T_max / 2; the first one that contains the target predicts it.
        start = max(0, -(-(t - TINY.T_max) // 4) * 4)
        logits = network(torch.tensor([whole[start:t]]))[0, -1]
        expected += float(cross_entropy(logits, torch.tensor(whole[t])))
    (total, other), counts = measure_losses(network, [text, np.array([4, 2])], END)
    assert total == pytest.approx(expected, rel=1e-5)
    assert counts.tolist() == [length + 1, 3]
    assert other == pytest.approx(measure_losses(network, [np.array([4, 2])], END)[0][0], rel=1e-5)


@pytest.mark.parametrize("wrong", [{"learning_rate": 0.0}, {"dropout": 1.0}, {"weight_decay": -1.0}, {"n_epochs": 0}])
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(BadInput):
        replace(QUICK, **wrong)


def test_too_few_tokens_are_refused():
    with pytest.raises(BadInput, match="needs more"):
        TokenStream.of([np.array([1])], END).windows(8, 0, 0)


SMALL = replace(TINY, n_tokens=280)


@pytest.mark.parametrize("moment", [(0, 2), (2, 1), (2, -1)])
def test_a_killed_run_on_a_data_set_resumes_to_the_same_bytes(tmp_path, moment):
    whole = tmp_path / "whole"
    model, epochs = train_gpt2(Toy(), SMALL, QUICK, whole)
    publish_gpt2(model, Toy(), epochs, "heedful train toy", whole)

    def kill(epoch, batch, n_batches):
        if (epoch, batch) == (moment[0], moment[1] % (n_batches + 1)):
            raise Killed

    broken, seen = tmp_path / "broken", []
    with pytest.raises(Killed):
        train_gpt2(Toy(), SMALL, QUICK, broken, kill)
    model, resumed = train_gpt2(Toy(), SMALL, QUICK, broken, lambda epoch, *_: seen.append(epoch))
    publish_gpt2(model, Toy(), resumed, "heedful train toy", broken)
    assert min(seen) == moment[0]
    assert resumed == epochs
    for name in ("model.safetensors", "card.md"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()


def test_it_learns_its_vocabulary_from_the_training_texts(tmp_path):
    model, epochs = train_gpt2(Toy(), SMALL, replace(QUICK, n_epochs=6), tmp_path)
    assert len(model.vocabulary) == 280
    assert b" film" in model.vocabulary.tokens
    assert epochs[-1].perplexity < epochs[0].perplexity
    # The texts have fewer pairs than that.
    few, _ = train_gpt2(Toy(n=4), replace(SMALL, n_tokens=5_000), QUICK, tmp_path / "few")
    assert len(few.vocabulary) == few.network.config.n_tokens < 400


def test_settings_that_the_texts_cannot_serve_leave_the_folder_free(tmp_path):
    for wrong, message in (({"T_max": 5_000}, "needs more"), ({"n_tokens": 100}, "too small")):
        with pytest.raises(BadInput, match=message):
            train_gpt2(Toy(), replace(SMALL, **wrong), QUICK, tmp_path)
    with pytest.raises(BadInput, match="a pair was given"):
        train_gpt2(Pairs(), SMALL, QUICK, tmp_path)
    assert RunFolder(tmp_path).settings() is None


def test_another_run_in_the_folder_is_refused_and_a_finished_one_left_alone(tmp_path):
    train_gpt2(Toy(), SMALL, QUICK, tmp_path)
    train_gpt2(Toy(), SMALL, QUICK, tmp_path, lambda *_: pytest.fail("a finished run trains no more"))
    for data, config in ((Toy(), replace(SMALL, depth=2)), (Toy(n=40), SMALL)):
        with pytest.raises(BadInput, match="contains another run, which differs in"):
            train_gpt2(data, config, QUICK, tmp_path)
