import json
from dataclasses import replace
from functools import partial
from html import unescape
from itertools import combinations
from math import factorial

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.features.feature_target import FeatureOutput
from heedful.models.twins.twin import twin
from heedful.render.comparison_page import notebook_fragment
from heedful.render.trust_page import trust_page
from tests.families import PAIR, TEXTS, build, pictures
from tests.features.random_dictionaries import random_dictionary

FAMILIES = ("bert", "gpt2", "own-gpt2", "encoder", "transformer")
READ = {"bert": slice(1, -1), "encoder": slice(1, None), "transformer": slice(1, None)}
"""Which tokens of a text are no special ones."""
TEXT = "a bad story , not dull"


def layer_of(family, network):
    """The layer whose inputs are read, as transformers and our own networks hold it."""
    if family == "bert":
        return network.bert.encoder.layer[1]
    return network.transformer.h[1] if family == "gpt2" else network.layers[1]


def residual(family, model, ids=None, e=None, seen=None):
    """The vectors that enter layer 1, from a plain pass of the network with a plain hook."""
    network, entered = model.network, []
    handle = layer_of(family, network).register_forward_pre_hook(lambda _, args: entered.append(args[0]))
    whole = torch.ones(1, len(ids) if e is None else e.shape[1], dtype=torch.bool) if seen is None else seen
    if family in ("bert", "gpt2"):
        inputs = {"input_ids": torch.tensor(ids)[None]} if e is None else {"inputs_embeds": e}
        run = partial(network, **inputs, attention_mask=whole.long())
    elif family == "own-gpt2":
        run = partial(network, torch.tensor(ids)[None]) if e is None else partial(network.states, e)
    elif family == "encoder":
        run = partial(network, network.W_e[torch.tensor(ids)][None] if e is None else e, whole)
    else:
        padded = [*(ids or []), *[1] * (network.config.T_max - len(ids or []))]
        words = network.W_e[torch.tensor(padded)][None] + network.W_p
        run = partial(network, words if e is None else e, torch.tensor([0]), None)
    try:
        run()
    finally:
        handle.remove()
    return entered[0][0]


def value_at_tokens(dictionary, feature, x, of="activation"):
    """The feature's value in each row: a matrix product, a threshold and the k largest, with NumPy."""
    W, b = dictionary.W_enc.double().numpy(), dictionary.b_enc.double().numpy()
    values = []
    for row in x.detach().double().numpy():
        pre = W @ row + b
        s = np.where(pre > dictionary.rule.thresholds[0].numpy(), np.maximum(pre, 0), 0)
        if dictionary.rule.k is not None:
            s[np.argsort(-s)[dictionary.rule.k :]] = 0
        values.append((s if of == "activation" else pre)[feature])
    return np.array(values)


POOLED = {"max": np.max, "mean": np.mean, "sum": np.sum, "last": lambda values: values[-1]}


def by_hand(family, model, dictionary, feature, ids, gone=(), at="max", of="activation"):
    """The value of a text of these tokens, some of which were removed and do not count."""
    places = [place for place in range(len(ids))[READ.get(family, slice(None))] if place not in gone]
    values = value_at_tokens(dictionary, feature, residual(family, model, ids)[places], of)
    return POOLED[at](values) if len(values) else 0.0


def loudest(model, dictionary, text=TEXT):
    """A feature that is active at several tokens, but not at all."""
    from heedful.features.activations import find_site, text_rows

    card = dictionary.card
    x = text_rows(model, [model.encode(text)], find_site(model, card.part, card.layer)).x
    s = dictionary.encode(x.to(dictionary.W_enc))
    n = (s > 0).sum(dim=0)
    return int(torch.where((n > 1) & (n < len(s)), s.max(dim=0).values, -1).argmax())


@pytest.fixture(params=FAMILIES)
def case(request):
    model = build(request.param)
    dictionary = random_dictionary(model, k=5)
    dictionary = replace(dictionary, rule=replace(dictionary.rule, thresholds=torch.full((1, 12), 0.2)))
    return request.param, model, dictionary, loudest(model, dictionary)


@pytest.mark.parametrize("of", ["activation", "pre-activation"])
def test_the_value_is_that_of_the_encoder_on_activations_recorded_by_hand(case, of):
    family, model, dictionary, feature = case
    free = replace(dictionary, rule=replace(dictionary.rule, k=None))
    for own in (dictionary, free):
        for at in POOLED:
            made = heedful.Feature(own, feature, at, of).model_for(model)
            ids = model.encode(TEXT).ids.tolist()
            expected = by_hand(family, model, own, feature, ids, at=at, of=of)
            assert made([TEXT])[0, 0] == pytest.approx(expected, abs=1e-9)
    # Texts of different lengths in one batch have the values that they have alone.
    texts = [*TEXTS, TEXT]
    assert np.allclose(made(texts), np.concatenate([made([text]) for text in texts]), atol=1e-9)


def test_with_several_passes_the_value_before_the_rule_is_that_of_the_last():
    model = build("gpt2")
    dictionary = random_dictionary(model)
    rule = replace(dictionary.rule, thresholds=torch.tensor([[0.5], [0.1]]).expand(2, 12).contiguous(), step=0.3)
    twice = replace(dictionary, rule=rule)
    x = residual("gpt2", model, model.encode(TEXT).ids.tolist()).detach().numpy()
    W, b, D, b_dec = (getattr(twice, name).double().numpy() for name in ("W_enc", "b_enc", "W_dec", "b_dec"))
    pre = x @ W.T + b
    pre = pre + 0.3 * (x - np.where(pre > 0.5, pre, 0) @ D - b_dec) @ W.T
    for feature in range(12):
        for of, values in (("pre-activation", pre), ("activation", np.where(pre > 0.1, pre, 0))):
            made = heedful.Feature(twice, feature, of=of).model_for(model)
            assert made([TEXT])[0, 0] == pytest.approx(values[:, feature].max(), abs=1e-6)


@pytest.mark.parametrize("at", ["max", "mean", "last"])
def test_leave_one_out_is_the_drop_where_the_word_is_replaced_and_does_not_count(case, at):
    family, model, dictionary, feature = case
    document = model.encode(TEXT)
    ids, value = document.ids.tolist(), partial(by_hand, family, model, dictionary, feature, at=at)
    drops, deleted = [], []
    for word in range(document.words.max() + 1):
        gone = np.flatnonzero(document.words == word).tolist()
        replaced = [model.replacement_id if place in gone else number for place, number in enumerate(ids)]
        drops.append(value(ids) - value(replaced, gone))
        deleted.append(value(ids) - value([number for place, number in enumerate(ids) if place not in gone]))
    target = heedful.Feature(dictionary, feature, at)
    explanation = heedful.explain(model, TEXT, "leave-one-out", target=target)
    assert np.abs(drops).max() > 1e-3 or at == "last"
    assert np.allclose(explanation.scores, drops, atol=1e-9)
    assert explanation.output == pytest.approx(value(ids), abs=1e-9)
    explanation = heedful.explain(model, TEXT, "leave-one-out", target=target, absence="delete")
    assert np.allclose(explanation.scores, deleted, atol=1e-9)


def test_a_word_that_is_replaced_by_itself_does_not_count():
    model = build("bert")
    dictionary = random_dictionary(model)
    target = heedful.Feature(dictionary, 0, "sum", "pre-activation")
    scores = heedful.explain(model, "a good film", "leave-one-out", target=target, absence="replace:film").scores
    value = partial(by_hand, "bert", model, dictionary, 0, model.encode("a good film").ids.tolist(), at="sum")
    assert scores[2] == pytest.approx(value(of="pre-activation") - value([3], of="pre-activation"))
    assert abs(scores[2]) > 1e-3


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_words_without_a_vector_or_hidden_from_attention_do_not_count(family):
    model = build(family)
    dictionary = random_dictionary(model)
    feature = loudest(model, dictionary)
    document = model.encode(TEXT)
    table = model.network.get_input_embeddings()
    own = table(torch.from_numpy(document.ids))[None].detach()
    whole = value_at_tokens(dictionary, feature, residual(family, model, e=own)[READ.get(family, slice(None))]).max()
    zero, hidden = [], []
    for word in range(document.words.max() + 1):
        kept = torch.from_numpy(document.words != word)
        counts = kept.numpy() & (document.words >= 0)
        x = residual(family, model, e=own * kept[None, :, None])
        zero.append(whole - value_at_tokens(dictionary, feature, x[counts]).max())
        x = residual(family, model, e=own, seen=kept[None])
        hidden.append(whole - value_at_tokens(dictionary, feature, x[counts]).max())
    for absence, expected in (("zero", zero), ("mask", hidden)):
        explanation = heedful.explain(
            model, TEXT, "leave-one-out", target=heedful.Feature(dictionary, feature), absence=absence
        )
        assert np.abs(expected).max() > 1e-3
        assert np.allclose(explanation.scores, expected, atol=1e-7)


@pytest.mark.parametrize("of", ["activation", "pre-activation"])
def test_the_gradient_is_that_of_the_function_written_by_hand(case, of):
    family, model, dictionary, feature = case
    document = model.encode(TEXT)
    W, b = dictionary.W_enc.double(), dictionary.b_enc.double()
    for at in ("max", "mean"):
        e = model.embed([document]).detach().requires_grad_()
        x = residual(family, model, e=e)[: len(document.ids)][READ.get(family, slice(None))]
        pre = x @ W.T + b
        if of == "activation":
            above = torch.where(pre > 0.2, pre, torch.zeros_like(pre))
            largest = above.sort(dim=1, descending=True).values[:, 4:5]
            pre = torch.where(above >= largest, above, torch.zeros_like(pre))
        f = pre[:, feature].max() if at == "max" else pre[:, feature].mean()
        (gradient,) = torch.autograd.grad(f, e)
        expected = (e * gradient).sum(dim=2)[0, : len(document.ids)].detach().numpy()
        explanation = heedful.explain(
            model, TEXT, "gradient-x-input", target=heedful.Feature(dictionary, feature, at, of), unit="token"
        )
        assert np.abs(expected).max() > 1e-6
        assert np.allclose(explanation.scores, expected[document.words >= 0], atol=1e-8)
        assert explanation.output == pytest.approx(float(f.detach()), abs=1e-9)


def test_shapley_values_of_a_short_text_are_those_of_every_subset(case):
    family, model, dictionary, feature = case
    text = "a bad dull story"
    document = model.encode(text)
    n = document.words.max() + 1
    value = {}
    for size in range(n + 1):
        for kept in combinations(range(n), size):
            gone = [p for p, word in enumerate(document.words) if word >= 0 and word not in kept]
            ids = [model.replacement_id if p in gone else number for p, number in enumerate(document.ids.tolist())]
            value[kept] = by_hand(family, model, dictionary, feature, ids, gone)
    assert value[()] == 0
    scores = [
        sum(
            factorial(len(kept))
            * factorial(n - len(kept) - 1)
            / factorial(n)
            * (value[tuple(sorted((*kept, word)))] - value[kept])
            for kept in value
            if word not in kept
        )
        for word in range(n)
    ]
    explanation = heedful.explain(model, text, "shapley-sampled", target=heedful.Feature(dictionary, feature))
    assert np.allclose(explanation.scores, scores, atol=1e-9)
    assert explanation.scores.sum() == pytest.approx(explanation.output, abs=1e-9)


def test_a_text_of_which_nothing_is_left_has_the_value_of_no_feature_at_all():
    model = build("gpt2")
    dictionary = random_dictionary(model, k=5)
    document = model.encode(TEXT)
    nothing = np.zeros((1, len(document.ids)), dtype=bool)
    pre = float(dictionary.W_enc[4] @ dictionary.b_dec + dictionary.b_enc[4])
    for at, of, expected in (("max", "activation", 0), ("max", "pre-activation", pre), ("sum", "pre-activation", 0)):
        made = heedful.Feature(dictionary, 4, at, of).model_for(model)
        for absence in ("replace", "delete", "mask"):
            values = made.masked(document, heedful.Target(0, "", returns="scores"), nothing, absence)
            assert values == pytest.approx([expected], abs=1e-6)


def test_attention_is_that_of_the_layers_below_read_at_the_feature_s_tokens():
    # A model of its own: asked for its attention, a network of transformers keeps hooks.
    model = build.__wrapped__("gpt2")
    dictionary = random_dictionary(model, layer=2)
    feature = loudest(model, dictionary)
    document = model.encode(TEXT)
    model.network.set_attn_implementation("eager")
    entered = []
    handle = model.network.transformer.h[2].register_forward_pre_hook(lambda _, args: entered.append(args[0][0]))
    with torch.no_grad():
        maps = model.network(torch.from_numpy(document.ids)[None], output_attentions=True).attentions
    handle.remove()
    model.network.set_attn_implementation("sdpa")
    below = torch.stack(maps[:2])[:, 0].numpy()
    values = value_at_tokens(dictionary, feature, entered[0])
    rows = {"max": below[:, :, values.argmax()], "last": below[:, :, -1], "mean": below.mean(axis=2)}
    for at, expected in rows.items():
        target = heedful.Feature(dictionary, feature, at)
        explanation = heedful.explain(model, TEXT, "attention-mean", target=target, unit="token")
        assert np.allclose(explanation.scores, expected.mean(axis=(0, 1)), atol=1e-9)
    # Of a silent feature attention is read where the value before the rule is largest.
    silent = replace(dictionary, rule=replace(dictionary.rule, thresholds=torch.full((1, 12), 1e6)))
    explanation = heedful.explain(model, TEXT, "attention-mean", target=heedful.Feature(silent, feature), unit="token")
    assert np.allclose(explanation.scores, rows["max"].mean(axis=(0, 1)), atol=1e-9)
    maps = heedful.compare(model, TEXT, ["rollout", "random"], target=heedful.Feature(dictionary, feature)).maps
    assert maps is not None
    assert np.allclose(maps, below, atol=1e-9)


@pytest.mark.parametrize(
    ("family", "layer", "sentence"),
    [("bert", 0, "no attention below it"), ("t5", 1, "only attention from the decoder")],
)
def test_attention_that_there_is_not_is_refused_with_the_reason(family, layer, sentence):
    model = build(family)
    made = heedful.Feature(random_dictionary(model, layer=layer), 3).model_for(model)
    assert {"masks", "gradients"} == made.offers
    assert sentence in made.description
    with pytest.raises(Unsupported, match=sentence):
        heedful.explain(model, TEXTS[0], "rollout", target=heedful.Feature(random_dictionary(model, layer=layer), 3))


@pytest.mark.parametrize("family", ["bert", "transformer", "vit"])
def test_every_method_explains_a_feature(family):
    model = build(family)
    dictionary = random_dictionary(model, k=6)
    text = pictures()[0] if family == "vit" else TEXTS[0]
    feature = loudest(model, dictionary, text)
    methods = [name for name, kind in heedful.methods().items() if not kind.needs & {"weights", "pooling"}]
    comparison = heedful.compare(
        model, text, methods, target=heedful.Feature(dictionary, feature), progress=None, n_samples=160, n_steps=8
    )
    assert not comparison.skipped
    assert all(np.isfinite(explanation.scores).all() for explanation in comparison.explanations)
    moved = [e.method for e in comparison.explanations if not e.scores.any()]
    assert set(moved) <= {"gradient-mean", "anchors"}


def test_the_encoder_of_an_encoder_decoder_has_features_of_the_source():
    model = build("t5")
    dictionary = random_dictionary(model, k=5)
    feature = loudest(model, dictionary, PAIR)
    entered = []
    handle = model.network.encoder.block[1].register_forward_pre_hook(lambda _, args: entered.append(args[0][0]))
    source = model.encode(PAIR.first).ids[model.encode(PAIR.first).segments == 0]
    with torch.no_grad():
        model.network.encoder(input_ids=torch.from_numpy(source)[None])
    handle.remove()
    expected = value_at_tokens(dictionary, feature, entered[0][:-1]).max()
    explanation = heedful.explain(model, PAIR, "leave-one-out", target=heedful.Feature(dictionary, feature))
    assert explanation.output == pytest.approx(expected, abs=1e-9)
    n_source = len(PAIR.first.split())
    assert explanation.scores[:n_source].any()
    assert np.allclose(explanation.scores[n_source:], 0, atol=1e-9)


def test_a_feature_of_an_image_is_explained_by_its_patches():
    model = build("vit")
    dictionary = random_dictionary(model)
    feature = loudest(model, dictionary, pictures()[0])
    document = model.encode(pictures()[0])
    explanation = heedful.explain(model, pictures()[0], "leave-one-out", target=heedful.Feature(dictionary, feature))
    pixels = torch.from_numpy(document.picture.pixels)[None].double()
    expected = []
    for patch in (None, *range(16)):
        grey, (row, column) = pixels.clone(), divmod(patch or 0, 4)
        if patch is not None:
            grey[:, :, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] = 0
        entered = []
        layers = next(module for module in model.network.modules() if isinstance(module, torch.nn.ModuleList))
        handle = layers[1].register_forward_pre_hook(lambda _, args, to=entered: to.append(args[0][0]))
        with torch.no_grad():
            model.network(pixel_values=grey)
        handle.remove()
        counts = [place for place in range(16) if place != patch]
        expected.append(value_at_tokens(dictionary, feature, entered[0][1:][counts]).max())
    assert np.allclose(explanation.scores, expected[0] - np.array(expected[1:]), atol=1e-9)


@pytest.mark.parametrize("at", ["max", "last"])
def test_a_silent_feature_is_noted_and_before_the_rule_it_has_gradients(at, tmp_path):
    model = build("encoder")
    dictionary = random_dictionary(model)
    silent = replace(dictionary, rule=replace(dictionary.rule, thresholds=torch.full((1, 12), 1e6)))
    target = heedful.Feature(silent, 3, at)
    explanation = heedful.explain(model, TEXT, "gradient-x-input", target=target)
    assert not explanation.scores.any()
    note = next(note for note in explanation.notes if note.kind == "silent")
    where = {"max": "at any token", "last": "at the last token"}[at]
    assert note == (
        f'Feature 3 is not active {where} of the text, so gradients are 0; of="pre-activation" explains what it lacks.'
    )
    explanation.save(tmp_path / "e.json")
    assert note in heedful.Explanation.load(tmp_path / "e.json").notes
    assert note in heedful.compare(model, TEXT, ["leave-one-out", "random"], target=target).notes
    report = heedful.trust(model, TEXTS, ["leave-one-out"], ["deletion"], target=target, progress=None)
    assert f"3 of 3 texts: {note}" in report.notes
    before = heedful.explain(model, TEXT, "gradient-x-input", target=heedful.Feature(silent, 3, at, "pre-activation"))
    assert before.scores.any()
    assert not [note for note in before.notes if note.kind == "silent"]


def test_many_texts_and_tables_are_explained_and_their_labels_are_not_classes(tmp_path):
    import pandas

    model = build("encoder")
    target = heedful.Feature(random_dictionary(model), 3)
    table = pandas.DataFrame({"text": TEXTS, "label": [0, 1, 2]})
    explanations = heedful.explain(model, table, "leave-one-out", target=target, progress=None)
    for text, explanation in zip(TEXTS, explanations, strict=True):
        alone = heedful.explain(model, text, "leave-one-out", target=target)
        assert explanation.as_dict() == alone.as_dict()
        assert str(explanation.target) == "feature 3 of layer 1"
        assert explanation.model == target.model_for(model).fingerprint
    explanations.save(tmp_path / "folder")
    opened = heedful.open(tmp_path / "folder")
    assert [item.as_dict() for item in opened] == [item.as_dict() for item in explanations]
    with pytest.raises(BadInput, match="A feature is the target of all texts"):
        heedful.explain(model, TEXTS, "leave-one-out", target=[target] * 3)


def test_reports_and_comparisons_name_the_feature_and_the_same_call_gives_the_same_bytes(tmp_path):
    model = build("encoder")
    target = heedful.Feature(random_dictionary(model, k=5), 3, "mean")
    texts = [(text, number % 2) for number, text in enumerate([*TEXTS, "a bad dull plot", "very good"])]

    report = partial(heedful.trust, model, texts, ["leave-one-out", "gradient-x-input"], target=target, progress=None)
    first = report(out=tmp_path)
    assert first.model == target.model_for(model).fingerprint
    assert first.asked["explains"] == "feature 3 of layer 1 (mean)"
    assert first.asked["model"] == "EncoderClassifier"
    assert first.accuracy is None
    assert "The labels were not used: a feature has no classes." in first.notes
    assert np.isfinite(first.means).all()
    assert [document.predicted for document in first.documents] == [
        f"{value:.3g}" for value in target.model_for(model)([text for text, _ in texts])[:, 0]
    ]
    page = unescape(trust_page(first))
    assert "explains feature 3 of layer 1 (mean)" in page
    assert "Classes:" not in page
    for one, two in zip(first.documents, report().documents, strict=True):
        assert (one.scores, one.values, one.predicted) == (two.scores, two.values, two.predicted)
    resumed = report(out=tmp_path)
    assert json.dumps(resumed.as_dict()) == json.dumps(first.as_dict())

    comparison = partial(heedful.compare, model, TEXT, ["lime", "rollout"], target=target, progress=None, n_samples=50)
    assert json.dumps(comparison().as_dict()) == json.dumps(comparison().as_dict())
    assert "feature 3 of layer 1 (mean)" in unescape(notebook_fragment(comparison().explanations))


def test_scores_of_other_packages_are_read_for_a_feature():
    model = build("encoder")
    target = heedful.Feature(random_dictionary(model), 3)
    explanation = heedful.read(model, "a bad story", [1.0, 2.0, 3.0], target=target)
    assert explanation.target.name == "feature 3 of layer 1"
    assert explanation.output == heedful.explain(model, "a bad story", "random", target=target).output


def test_a_clamp_below_acts_on_what_the_feature_reads():
    model = build("encoder")
    dictionary = random_dictionary(model)
    tied = replace(dictionary, W_enc=dictionary.W_dec, b_enc=torch.zeros(12))
    target = heedful.Feature(tied, loudest(model, tied), "max")
    with tied.clamp({target.number: 7.0}):
        held = heedful.explain(model, TEXT, "leave-one-out", target=target)
    # Where a tied feature is silent, what it lacks is not filled up.
    assert held.output == pytest.approx(7.0, abs=1e-5)
    assert held.model != heedful.explain(model, TEXT, "random", target=target).model


def test_a_twin_has_the_same_feature_and_a_scrambled_copy_another_fingerprint():
    model = build("encoder")
    dictionary = random_dictionary(model, k=5)
    made = heedful.Feature(dictionary, loudest(model, dictionary)).model_for(model)
    other = twin(made)
    assert other.fingerprint != made.fingerprint
    assert np.allclose(other(TEXTS), made(TEXTS), rtol=1e-4)


def test_the_fingerprint_has_the_model_the_dictionary_and_every_choice():
    model = build("encoder")
    dictionary = random_dictionary(model)
    targets = [
        heedful.Feature(dictionary, 3),
        heedful.Feature(dictionary, 4),
        heedful.Feature(dictionary, 3, "mean"),
        heedful.Feature(dictionary, 3, of="pre-activation"),
        heedful.Feature(random_dictionary(model, layer=2), 3),
        heedful.Feature(random_dictionary(model, part="mlp"), 3),
        heedful.Feature(random_dictionary(model, k=4), 3),
    ]
    made = [target.model_for(model).fingerprint for target in targets]
    assert len({*made, model.fingerprint}) == len(targets) + 1
    assert heedful.Feature(dictionary, 3).model_for(model).fingerprint == made[0]
    names = [target.name for target in targets]
    assert names[2:4] == ["feature 3 of layer 1 (mean)", "feature 3 of layer 1 (pre-activation)"]
    assert names[5] == "feature 3 of layer 1 (mlp)"
    assert repr(targets[0]) == f"Feature(feature 3 of layer 1, dictionary {dictionary.fingerprint})"


def test_requests_that_make_no_sense_are_refused_in_a_sentence():
    model = build("encoder")
    dictionary = random_dictionary(model)
    explain = partial(heedful.explain, data=TEXT, method="leave-one-out")
    with pytest.raises(BadInput, match="features 0 to 11; 12 was given"):
        heedful.Feature(dictionary, 12)
    target = heedful.Feature(dictionary, 3)
    with pytest.raises(BadInput, match="belongs to the model"):
        explain(build("bert"), target=target)
    for wrong in ({"against": 1}, {"scale": "probability"}):
        with pytest.raises(BadInput, match="no other class and no probability"):
            explain(model, target=target, **wrong)
        with pytest.raises(BadInput, match="no other class and no probability"):
            heedful.compare(model, TEXT, target=target, **wrong)
        with pytest.raises(BadInput, match="no other class and no probability"):
            heedful.trust(model, TEXTS, target=target, **wrong)
    nowhere = replace(dictionary, card=replace(dictionary.card, layer=-1))
    with pytest.raises(BadInput, match="no known layer"):
        explain(model, target=heedful.Feature(nowhere, 3))
    function = heedful.wrap(lambda texts: [[len(text), 1.0] for text in texts])
    with pytest.raises(Unsupported, match="has none that can be read"):
        explain(function, target=target)
    gpt2 = build("gpt2")
    with pytest.raises(BadInput, match="the model that this one was made from"):
        explain(heedful.continuation(gpt2, 3), target=heedful.Feature(random_dictionary(gpt2), 3))
    with pytest.raises(BadInput, match="has layers 0 to 2; layer 3 was given"):
        explain(model, target=heedful.Feature(random_dictionary(model, layer=3), 3))
    free = replace(dictionary, card=replace(dictionary.card, model=""))
    with pytest.raises(BadInput, match="loaded for another model"):
        explain(build("bert"), target=heedful.Feature(free, 3))
    tiny = replace(free, W_enc=free.W_enc[:, :5], W_dec=free.W_dec[:, :5], b_dec=free.b_dec[:5])
    with pytest.raises(BadInput, match="reads rows of 5 dimensions; 16 were given"):
        explain(model, target=heedful.Feature(tiny, 3))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"at": "median"}, "There is no value of a text 'median'; did you mean 'mean'[?] Known: last, max, mean, sum."),
        ({"of": "score"}, "There is no value of a token 'score'. Known: activation, pre-activation."),
        ({"dictionary": "a path"}, "A feature belongs to a dictionary, such as heedful.features.load gives"),
    ],
)
def test_settings_of_a_feature_that_there_are_not_are_refused(given, sentence):
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    dictionary = random_dictionary(build("encoder"))
    with pytest.raises(BadInput, match=sentence):
        heedful.Feature(**{"dictionary": dictionary, "number": 3, **given})


def test_a_model_of_a_feature_says_what_it_is():
    model = build("gpt2")
    made = heedful.Feature(random_dictionary(model), 3, "last").model_for(model)
    assert isinstance(made, FeatureOutput)
    assert made.description == (
        f"feature 3 of layer 1 (last) of GPT2LMHeadModel {made.fingerprint}; read from the last token of the text; "
        "returns a single score (feature 3 of layer 1 (last)); offers attention, gradients, masks"
    )
