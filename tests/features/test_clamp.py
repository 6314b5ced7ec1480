import threading
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful.document import SPECIAL
from heedful.errors import BadInput, Unsupported
from heedful.features.clamp import length_of
from heedful.models.attention_hook import still
from tests.families import TEXTS, build
from tests.features.random_dictionaries import random_dictionary
from tests.models.language.test_writer import writer

FAMILIES = ("gpt2", "llama", "bert", "t5", "encoder", "own-gpt2", "transformer", "torch")
LANGUAGE = ("gpt2", "llama", "own-gpt2")


def layer_of(model, number):
    """The module of a layer, named by hand."""
    network = model.network
    by_name = dict(network.named_modules())
    names = ("transformer.h", "model.layers", "bert.encoder.layer", "encoder.block", "encoder.layers", "layers")
    return next(by_name[name] for name in names if name in by_name)[number]


@contextmanager
def by_hand(model, dictionary, values, is_text):
    """The clamp as a hook on one layer; `is_text` says of every position that passes by whether it is clamped."""
    W_enc, W_dec = dictionary.W_enc, dictionary.W_dec

    def hook(module, args, named):
        x = args[0] if args else named["hidden_states"]
        s = torch.relu(x.float() @ W_enc.T + dictionary.b_enc)
        out = x.clone()
        for feature, c in values.items():
            out = out + is_text(x)[..., None] * ((c - s[..., feature])[..., None] * W_dec[feature]).to(x)
        return ((out, *args[1:]), named) if args else (args, {**named, "hidden_states": out})

    handle = layer_of(model, dictionary.card.layer).register_forward_pre_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def text_of(model, document):
    """Where a pass over one whole document has tokens of the text; of an encoder-decoder in its encoder."""
    own = document.words != SPECIAL
    own = own[document.segments == 0] if document.segments is not None else own

    def is_text(x):
        places = np.zeros(x.shape[1])
        places[: len(own)] = own
        return torch.from_numpy(places).to(x)

    return is_text


@pytest.mark.parametrize("family", FAMILIES)
def test_clamped_logits_are_those_of_a_hook_by_hand(family):
    model = build(family)
    dictionary, values = random_dictionary(model), {3: 2.0, 7: 0.0, 1: 1.5}
    for text in TEXTS:
        document = model.encode(text)
        with dictionary.clamp(values):
            clamped = model.logits([document])
        with by_hand(model, dictionary, values, text_of(model, document)):
            expected = model.logits([document])
        assert np.allclose(clamped, expected, atol=1e-6)
        assert not np.allclose(clamped, model.logits([document]), atol=1e-3)


@pytest.mark.parametrize("part", ["attention", "mlp"])
def test_what_a_layer_adds_can_be_clamped_too(part):
    model = build("own-gpt2")
    dictionary = random_dictionary(model, part=part)
    document = model.encode(TEXTS[0])
    module = model.network.layers[1].W_o if part == "attention" else model.network.layers[1].W_2

    def hook(_module, _inputs, x):
        s = torch.relu(x.float() @ dictionary.W_enc.T + dictionary.b_enc)
        return x + ((2.0 - s[..., 4])[..., None] * dictionary.W_dec[4]).to(x)

    with dictionary.clamp({4: 2.0}):
        clamped = model.logits([document])
    handle = module.register_forward_hook(hook)
    assert np.allclose(clamped, model.logits([document]), atol=1e-6)
    handle.remove()


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_of_a_batch_are_clamped_as_each_alone(family):
    model = build(family)
    dictionary = random_dictionary(model, k=3)
    with dictionary.clamp({2: "2x"}):
        together, alone = model(TEXTS), np.concatenate([model([text]) for text in TEXTS])
    assert np.allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize("family", LANGUAGE)
@pytest.mark.parametrize("strategy", ["greedy", "beam"])
def test_generated_text_is_that_of_whole_passes_by_hand(family, strategy):
    model = build(family)
    dictionary, values = random_dictionary(model), {3: 4.0, 5: 1.0}
    with dictionary.clamp(values):
        written = heedful.generate(model, TEXTS[0], strategy, max_new=6, progress=None)
    document = model.continued(written.document, written.ids[:-1])
    ends = {0}

    def is_text(x):
        return torch.tensor([float(number not in ends) for number in document.ids.tolist()]).to(x)

    with torch.no_grad(), still(model.network), by_hand(model, dictionary, values, is_text):
        logits = model.token_logits(model.embed([document]), [document], None, len(written.ids))[0]
    log_p = torch.log_softmax(logits, dim=-1)
    assert np.allclose(log_p[range(len(written.ids)), list(written.ids)], written.log_probabilities, atol=1e-6)
    if strategy == "greedy":
        assert log_p.argmax(dim=1).tolist() == list(written.ids)
    plain = heedful.generate(model, TEXTS[0], strategy, max_new=6, progress=None)
    assert not np.allclose(written.log_probabilities[0], plain.log_probabilities[0], atol=1e-3)


@torch.no_grad()
def test_the_first_token_of_a_text_that_begins_with_a_special_one_stays():
    model = writer()
    dictionary = random_dictionary(model)
    document = model.encode("the film was good")
    with dictionary.clamp({3: 4.0}), still(model.network):
        read = model.read(document).logits
        whole = model.token_logits(model.embed([document]), [document])[:, 0]
    with by_hand(model, dictionary, {3: 4.0}, text_of(model, document)):
        assert torch.allclose(read, model.forward(model.embed([document]), [document]), atol=1e-6)
    assert torch.allclose(read, whole, atol=1e-9)


@pytest.mark.parametrize("family", LANGUAGE)
def test_masks_that_share_a_prefix_are_clamped_as_each_alone(family):
    model = build(family)
    dictionary = random_dictionary(model)
    document = model.encode("the film was good and very bright . a bad story , but not a dull plot !")
    target = heedful.Target(5, "5")
    keep = np.ones((6, len(document.ids)), dtype=bool)
    keep[range(6), -np.arange(1, 7)] = False
    with dictionary.clamp({3: 4.0}):
        together = model.masked(document, target, keep, "replace")
        alone = np.concatenate([model.masked(document, target, row[None], "replace") for row in keep])
    assert np.allclose(together, alone, atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("family", LANGUAGE)
def test_what_is_cut_is_clamped_as_a_whole_pass(family):
    model = build(family)
    dictionary = random_dictionary(model)
    document = model.encode(TEXTS[1])
    keep = np.ones((2, len(document.ids)), dtype=bool)
    with dictionary.clamp({3: 4.0}), still(model.network):
        cut = model.cut(document, 3)(keep)
        whole = model.token_logits(model.embed([document]), [document], None, 3)
    assert torch.allclose(cut, whole.expand_as(cut), atol=1e-6)


def test_explanations_are_of_the_clamped_model_and_say_so():
    model = build("bert")
    dictionary = random_dictionary(model)
    document, plain = model.encode(TEXTS[1]), model.fingerprint
    with dictionary.clamp({3: 4.0}):
        removed = heedful.explain(model, TEXTS[1], "leave-one-out", target=1)
        gradient = heedful.explain(model, TEXTS[1], "gradient-x-input", target=1, unit="token")
        assert removed.model == gradient.model == model.fingerprint != plain
    assert heedful.explain(model, TEXTS[1], "leave-one-out", target=1).model == plain
    with by_hand(model, dictionary, {3: 4.0}, text_of(model, document)):
        by_hooks = heedful.explain(model, TEXTS[1], "gradient-x-input", target=1, unit="token")
        # A word that is replaced becomes a special token, which by hand is still clamped.
        assert removed.output == pytest.approx(model.logits([document])[0, 1], abs=1e-6)
    assert np.allclose(gradient.scores, by_hooks.scores, atol=1e-6)


def test_a_model_of_what_is_written_keeps_clamped_texts_apart():
    model = build("gpt2")
    dictionary = random_dictionary(model)
    continued = heedful.continuation(model, max_new=4)
    plain = continued.encode(TEXTS[0])
    with dictionary.clamp({3: 30.0}):
        steered = continued.encode(TEXTS[0])
        assert steered.text == heedful.generate(model, TEXTS[0], max_new=4, progress=None).document.text + (
            heedful.generate(model, TEXTS[0], max_new=4, progress=None).text
        )
    assert steered.text != plain.text
    assert continued.encode(TEXTS[0]) is plain


def test_attributions_inside_are_of_the_clamped_model():
    model = build("gpt2")
    dictionary = random_dictionary(model)
    with dictionary.clamp({3: 30.0}, model=heedful.continuation(model)):
        table = heedful.attribute(model, TEXTS[0], " good film", "leave-one-out", progress=None)
        written = heedful.generate(model, TEXTS[0], max_new=1, progress=None)
    first = [step for step in written.steps[0].alternatives if step.token == table.outputs[0]]
    assert all(np.log(step.probability) == pytest.approx(table.values[0], abs=1e-5) for step in first)
    plain = heedful.attribute(model, TEXTS[0], " good film", "leave-one-out", progress=None)
    assert not np.allclose(table.values, plain.values, atol=1e-3)


def test_a_clamp_inside_another_acts_on_what_that_leaves():
    model = build("gpt2")
    dictionary, plain = random_dictionary(model), build("gpt2").fingerprint
    document = model.encode(TEXTS[0])
    with dictionary.clamp({3: 2.0}):
        outer = model.fingerprint
        with dictionary.clamp({5: 1.0}, model=model):
            nested = model.logits([document])
            assert len({plain, outer, model.fingerprint}) == 3
        assert model.fingerprint == outer
    text = text_of(model, document)
    with by_hand(model, dictionary, {3: 2.0}, text), by_hand(model, dictionary, {5: 1.0}, text):
        assert np.allclose(nested, model.logits([document]), atol=1e-6)
    assert model.fingerprint == plain


def test_the_model_is_restored_after_an_error():
    model = build("llama")
    dictionary, fingerprint, before = random_dictionary(model), model.fingerprint, model(TEXTS)

    def hooks():
        return [[*module._forward_pre_hooks, *module._forward_hooks] for module in model.network.modules()]

    own = hooks()
    with dictionary.clamp({3: 2.0}):
        assert hooks() != own
    with pytest.raises(ZeroDivisionError), dictionary.clamp({3: 2.0}):
        raise ZeroDivisionError
    assert model.fingerprint == fingerprint
    assert np.array_equal(model(TEXTS), before)
    assert hooks() == own


def test_other_threads_see_the_plain_model():
    model = build("gpt2")
    dictionary, before, seen = random_dictionary(model), model(TEXTS[:1]), []
    other = threading.Thread(target=lambda: seen.append(model(TEXTS[:1])))
    with dictionary.clamp({3: 9.0}):
        other.start()
        other.join(0.2)
        assert seen == []
    other.join()
    assert np.array_equal(seen[0], before)


def test_ablation_holds_features_at_zero():
    model = build("encoder")
    dictionary = random_dictionary(model)
    with dictionary.ablate([2, 4]):
        ablated = model(TEXTS)
    with dictionary.clamp({2: 0, 4: 0.0}):
        assert np.array_equal(ablated, model(TEXTS))


def test_a_push_adds_a_vector_at_every_token_of_the_text():
    model = build("llama")
    dictionary = random_dictionary(model)
    document = model.encode(TEXTS[0])
    is_text = text_of(model, document)

    def hook(module, args, named):
        x = args[0]
        return (x + is_text(x)[:, None] * 2.5 * dictionary.W_dec[3].to(x), *args[1:]), named

    with dictionary.push(3, 2.5):
        pushed = model.logits([document])
    with dictionary.push(7 * dictionary.directions[3], 2.5):
        assert np.allclose(model.logits([document]), pushed, atol=1e-5)
    handle = layer_of(model, 1).register_forward_pre_hook(hook, with_kwargs=True)
    assert np.allclose(model.logits([document]), pushed, atol=1e-6)
    handle.remove()


def test_a_multiple_is_of_the_largest_activation():
    dictionary = random_dictionary(build("gpt2"))
    assert length_of(dictionary, 4, "5x") == pytest.approx(5 * 2.0)
    assert length_of(dictionary, 4, " 2.5 × ") == pytest.approx(2.5 * 2.0)
    assert length_of(dictionary, 4, 3) == 3.0


@pytest.mark.parametrize("value", [-1, "x", "5", "-5x", True, float("nan"), float("inf"), 10**400])
def test_a_value_that_is_no_activation_is_refused(value):
    dictionary = random_dictionary(build("gpt2"))
    with pytest.raises(BadInput, match="at least 0"), dictionary.clamp({3: value}):
        pass


def test_requests_that_make_no_sense_are_refused():
    model, other = build("gpt2"), build("llama")
    dictionary = random_dictionary(model)
    requests = [
        (dictionary, {}, None, "such as {1234: 5.0}"),
        (dictionary, {99: 1.0}, None, "features 0 to 11"),
        (dictionary, {3: 1.0}, other, f"belongs to the model {model.fingerprint}; this model is {other.fingerprint}"),
        (random_dictionary(model, bind=False), {3: 1.0}, None, "bound to no model"),
        (random_dictionary(model, layer=-1), {3: 1.0}, None, "no known layer"),
        (random_dictionary(model, layer=7), {3: 1.0}, None, "layers 0 to 2"),
    ]
    for asked, values, model_given, message in requests:
        with pytest.raises(BadInput, match=message), asked.clamp(values, model=model_given):
            pass
    for direction in (np.ones(3), np.full(16, np.nan)):
        with pytest.raises(BadInput, match="vector of 16"), dictionary.push(direction, 1.0):
            pass
    own = random_dictionary(model)
    cut = {name: getattr(own, name)[..., :5] for name in ("W_enc", "W_dec", "b_dec")}
    narrow = replace(own, **cut)
    with narrow.push(3, 1.0), pytest.raises(BadInput, match="rows of 5 dimensions; the model's have 16"):
        model(TEXTS)
    with pytest.raises(BadInput, match="as a list"):
        dictionary.check_features(3)
    with pytest.raises(BadInput, match="no largest activation"), dictionary.push(np.ones(16), "5x"):
        pass


def test_a_model_whose_tokens_are_not_known_is_refused():
    function = heedful.wrap(lambda texts: [[0.2, 0.8] for _ in texts])
    dictionary = random_dictionary(build("gpt2"))
    with pytest.raises(Unsupported, match="cannot be changed"), dictionary.clamp({3: 1.0}, model=function):
        pass


def test_a_negative_length_pushes_the_other_way():
    model = build("gpt2")
    dictionary = random_dictionary(model)
    for negative, length in ((-2.0, 2.0), ("-2x", "2x"), (" -0.5x", "0.5x")):
        with dictionary.push(3, negative):
            back = model(TEXTS)
        distance = length if isinstance(length, float) else length_of(dictionary, 3, length)
        with dictionary.push(-dictionary.directions[3], distance):
            assert np.allclose(model(TEXTS), back, atol=1e-5)
