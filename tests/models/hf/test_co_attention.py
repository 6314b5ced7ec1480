"""LXMERT, whose streams of words and regions attend to each other."""

import numpy as np
import pytest
import torch
import transformers as hf
from torch.nn import functional

import heedful
from heedful.errors import BadInput, Unsupported
from tests.families import loud, word_pieces


@pytest.fixture(scope="module")
def lxmert():
    torch.manual_seed(0)
    tokenizer = word_pieces()
    sizes = {"hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 24, "num_qa_labels": 5}
    layers = {"l_layers": 2, "x_layers": 2, "r_layers": 2, "visual_feat_dim": 20, "max_position_embeddings": 64}
    config = hf.LxmertConfig(vocab_size=len(tokenizer), **sizes, **layers)
    network = loud(hf.LxmertForQuestionAnswering(config)).double().eval()
    return network, tokenizer, heedful.wrap(network, tokenizer)


def regions(n=3, seed=0):
    rng = np.random.default_rng(seed)
    return heedful.Regions(
        "the film was ?", rng.normal(size=(n, 20)), rng.random((n, 4)), ("dog", "cat", "red car")[:n]
    )


def tensors(tokenizer, given):
    ids = tokenizer(given.text, return_tensors="pt")["input_ids"]
    return {
        "input_ids": ids,
        "visual_feats": torch.from_numpy(given.features)[None],
        "visual_pos": torch.from_numpy(given.boxes)[None],
    }


def maps_of(network, inputs):
    """Every attention matrix with its gradient for answer 2, in the order of the calls, by LXMERT's own softmax."""
    maps, softmax = [], functional.softmax

    def kept(*arguments, **named):
        maps.append(softmax(*arguments, **named))
        return maps[-1]

    functional.softmax = kept
    try:
        value = network(**inputs).question_answering_score[0, 2]
    finally:
        functional.softmax = softmax
    slopes = torch.autograd.grad(value, maps, allow_unused=True)
    zero = [torch.zeros_like(a) if slope is None else slope for a, slope in zip(maps, slopes, strict=True)]
    return [(a * slope).clamp(min=0).mean(dim=1)[0] for a, slope in zip(maps, zero, strict=True)], maps


def normalised(R):
    gained = R - torch.eye(len(R))
    total = gained.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, gained / total, 0 * gained) + torch.eye(len(R))


def test_gradient_attention_follows_the_bi_modal_rules(lxmert):
    network, tokenizer, model = lxmert
    given = regions()
    weighted, _ = maps_of(network, tensors(tokenizer, given))
    n_words, n_regions = 6, 3
    tt, ii = torch.eye(n_words).double(), torch.eye(n_regions).double()
    ti, it = torch.zeros(n_words, n_regions).double(), torch.zeros(n_regions, n_words).double()
    calls = iter(weighted)
    for _ in range(2):  # the text alone, Eqs. (6) and (7)
        A = next(calls)
        tt, ti = tt + A @ tt, ti + A @ ti
    for _ in range(2):  # the regions alone
        A = next(calls)
        ii, it = ii + A @ ii, it + A @ it
    for _ in range(2):  # both, Eqs. (8) to (11), each from what is below
        text_to_image, image_to_text, text, image = (next(calls) for _ in range(4))
        more_ti = normalised(tt).T @ text_to_image @ normalised(ii)
        more_tt = text_to_image @ it
        more_it = normalised(ii).T @ image_to_text @ normalised(tt)
        more_ii = image_to_text @ ti
        tt, ti, ii, it = tt + more_tt, ti + more_ti, ii + more_ii, it + more_it
        tt, ti = tt + text @ tt, ti + text @ ti
        ii, it = ii + image @ ii, it + image @ it
    explanation = heedful.explain(model, given, "gradient-attention", target=2, unit="token")
    expected = torch.cat([tt[0, 1:-1], ti[0]]).detach().numpy()
    assert explanation.units == ("the", "film", "was", "?", "dog", "cat", "red car")
    assert np.allclose(explanation.scores, expected, atol=1e-10)
    assert expected[4:].max() > 1e-3


def test_maps_are_the_attention_of_words_to_regions(lxmert):
    network, tokenizer, model = lxmert
    given = regions()
    _, maps = maps_of(network, tensors(tokenizer, given))
    seen = model.maps(model.encode(given))
    assert np.allclose(seen, torch.cat([maps[4], maps[8]]).detach().numpy(), atol=1e-12)
    mean = heedful.explain(model, given, "attention-mean", target=2)
    assert np.allclose(mean.scores, [0, 0, 0, 0, *seen[:, :, 0].mean(axis=(0, 1))])


def test_removed_words_and_regions_are_those_of_the_network_itself(lxmert):
    network, tokenizer, model = lxmert
    given, inputs = regions(), tensors(tokenizer, regions())
    with torch.no_grad():
        whole = network(**inputs).question_answering_score[0, 2].item()
        for absence in ("replace", "delete", "mask", "mean"):
            losses = heedful.explain(model, given, "leave-one-out", target=2, absence=absence)
            kept = torch.tensor([0, 2])
            changed = dict(inputs)
            if absence == "replace":
                changed["visual_feats"] = inputs["visual_feats"] * torch.tensor([1.0, 0, 1])[:, None]
            elif absence == "mean":
                changed["visual_feats"] = inputs["visual_feats"].clone()
                changed["visual_feats"][0, 1] = inputs["visual_feats"][0].mean(dim=0)
            else:
                changed = {**inputs, **{name: inputs[name][:, kept] for name in ("visual_feats", "visual_pos")}}
            value = network(**changed).question_answering_score[0, 2].item()
            assert losses.scores[5] == pytest.approx(whole - value, abs=1e-10)
            assert losses.output == pytest.approx(whole, abs=1e-10)
        inputs["input_ids"][0, 2] = tokenizer.mask_token_id
        value = network(**inputs).question_answering_score[0, 2].item()
    losses = heedful.explain(model, given, "leave-one-out", target=2)
    assert losses.scores[1] == pytest.approx(whole - value, abs=1e-10)


def test_gradients_are_those_of_word_vectors_and_features(lxmert):
    network, tokenizer, model = lxmert
    given, inputs = regions(), tensors(tokenizer, regions())
    e = network.get_input_embeddings()(inputs.pop("input_ids")).detach().requires_grad_()
    features = inputs["visual_feats"].requires_grad_()
    value = network(inputs_embeds=e, **inputs).question_answering_score[0, 2]
    of_words, of_regions = torch.autograd.grad(value, [e, features])
    expected = torch.cat([of_words[0, 1:-1].norm(dim=-1), of_regions[0].norm(dim=-1)]).numpy()
    assert np.allclose(heedful.explain(model, given, "gradient-l2", target=2).scores, expected, atol=1e-10)


def test_texts_of_several_sizes_share_a_batch(lxmert):
    _, _, model = lxmert
    several = [regions(), heedful.Regions("film", *(getattr(regions(2, 1), name) for name in ("features", "boxes")))]
    together = model.logits([model.encode(one) for one in several])
    alone = np.concatenate([model.logits([model.encode(one)]) for one in several])
    assert np.allclose(together, alone, atol=1e-10)
    kept = heedful.explain(model, several, "gradient-attention", target=1)
    for one, own in zip(several, kept, strict=True):
        assert np.allclose(heedful.explain(model, one, "gradient-attention", target=1).scores, own.scores, atol=1e-10)


def test_a_masked_copy_without_regions_is_refused(lxmert):
    with pytest.raises(Unsupported, match="no region left"):
        heedful.explain(lxmert[2], regions(1), "leave-one-out", target=1, absence="delete")


@pytest.mark.parametrize("method", ["rollout", "attention-flow", "relevance-attention"])
def test_methods_without_a_rule_for_co_attention_are_refused(lxmert, method):
    with pytest.raises(Unsupported, match=r"gradient-attention"):
        heedful.explain(lxmert[2], regions(), method, target=1)


def test_other_inputs_are_refused(lxmert):
    for given, message in (("a film", "heedful.Regions"), (heedful.Regions("a", [[1.0]], [[0.0] * 4]), "20 features")):
        with pytest.raises(BadInput, match=message):
            heedful.explain(lxmert[2], given)


def test_a_model_without_answers_has_coordinates(lxmert):
    network, tokenizer, _ = lxmert
    bare = heedful.wrap(network.lxmert, tokenizer)
    with torch.no_grad():
        pooled = network.lxmert(**tensors(tokenizer, regions())).pooled_output[0, 3].item()
    assert heedful.explain(bare, regions(), "attention-mean", target=3).output == pytest.approx(pooled)
