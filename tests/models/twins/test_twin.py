import numpy as np
import pytest
import torch
from torch import nn

import heedful
from heedful.document import SPECIAL
from heedful.errors import Unsupported
from heedful.models.transformer import Transformer, TransformerConfig, initial_network
from heedful.models.twins.twin import twin
from heedful.models.vocabulary import Vocabulary
from tests.conftest import WORDS, tiny_model
from tests.families import CHANGEABLE, TEXTS, VISION, asked, build, split, texts_for

ALL = [*(family for family in CHANGEABLE if family != "classic"), "single-layer"]


def model_of(family):
    return tiny_model() if family == "single-layer" else build(family)


def distance(one, other):
    return np.linalg.norm(one / np.linalg.norm(one) - other / np.linalg.norm(other))


@pytest.mark.parametrize("family", ALL)
def test_a_twin_has_other_weights_and_equal_logits_for_texts_and_masks(family):
    model = model_of(family)
    weights, other = {name: weight.clone() for name, weight in model.network.state_dict().items()}, twin(model)
    assert other.fingerprint != model.fingerprint
    for text in (texts_for(family) if family != "single-layer" else TEXTS)[:2]:
        document = model.encode(text)
        keep = np.random.default_rng(1).random((8, len(document.ids))) < 0.5
        keep |= document.words == SPECIAL
        # Some of transformers' norms compute in single precision whatever the weights are.
        close = {"rtol": 0, "atol": 1e-9 if family not in ("llama", "mistral", "qwen", "t5") else 1e-6}
        np.testing.assert_allclose(other([text]), model([text]), **close)
        for absence in ("replace", "delete", "mean"):
            if family in VISION and absence == "delete":
                continue
            ours, theirs = (one.masked(document, asked(model), keep, absence) for one in (model, other))
            np.testing.assert_allclose(theirs, ours, **close)
    after = model.network.state_dict()
    assert all(torch.equal(after[name], weight) for name, weight in weights.items())


def many_inputs(family):
    rng = np.random.default_rng(0)
    if family in VISION:
        return list(rng.integers(0, 255, (1000, 16, 16, 3), dtype=np.uint8))
    return [" ".join(rng.choice(WORDS, size=rng.integers(1, 12))) for _ in range(1000)]


@pytest.mark.parametrize("family", ["bert", "gpt2", "vit"])
def test_a_twin_has_equal_logits_on_a_thousand_inputs(family):
    model, inputs = build(family), many_inputs(family)
    np.testing.assert_allclose(twin(model)(inputs), model(inputs), rtol=0, atol=1e-6)


WRITTEN_IN_WEIGHTS = ("attention-mean", "rollout", "value-norms", "effective-attention", "gradient-attention")
WRITTEN_IN_WORD_VECTORS = ("gradient-l2", "gradient-x-input", "integrated-gradients", "gradient-shap")


@pytest.mark.parametrize("family", ["bert", "gpt2", "vit"])
def test_methods_that_read_the_weights_change_and_those_of_the_function_alone_do_not(family):
    model, text = build(family), texts_for(family)[1]
    other = twin(model)

    def change(method):
        return distance(*(heedful.explain(m, text, method, target=asked(model)).scores for m in (model, other)))

    methods = WRITTEN_IN_WEIGHTS + (() if family in VISION else WRITTEN_IN_WORD_VECTORS)
    assert all(change(method) > 1e-3 for method in methods), {method: change(method) for method in methods}
    assert all(change(method) < 1e-9 for method in ("leave-one-out", "occlusion", "hierarchical-shapley"))


@pytest.mark.parametrize("tied", ["no", "query-key", "layers"])
def test_tied_transformers_have_twins_with_one_more_head(tied):
    config = TransformerConfig(2, True, False, "relu", tied=tied, n_heads=2, T_max=16, d_e=8, d_att=4, d_out=4)
    vocabulary = Vocabulary(("[cls]", "[unk]", *WORDS))
    model = Transformer(initial_network(config, len(vocabulary), 0).double(), vocabulary, ["bad", "good"])
    other = twin(model)
    np.testing.assert_allclose(other(TEXTS), model(TEXTS), rtol=0, atol=1e-9)
    assert other.attention([other.encode(TEXTS[0])]).shape[2] == 3


@pytest.mark.slow
def test_on_the_twin_of_the_paper_s_model_only_what_depends_on_the_scale_of_embeddings_changes(tiny):
    other, text = twin(tiny), "a very good film , but the plot was dull"
    for method in ("lime-exact", "shapley-exact", "gradient-x-input", "attention-mean", "leave-one-out"):
        ours, theirs = (heedful.explain(model, text, method).scores for model in (tiny, other))
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-9 * np.abs(ours).max())
    assert distance(*(heedful.explain(model, text, "gradient-mean").scores for model in (tiny, other))) > 0.01


class Peeping(nn.Module):
    """Its logits look at the weights themselves, so that every other way to write them changes it."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(40, 8), nn.Linear(8, 2)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, ids):
        e = self.words(ids)
        seen = (self.attention.in_proj_weight * torch.arange(24)[:, None]).sum()
        return self.out(self.attention(e, e, e)[0].mean(dim=1)) + seen + self.peep()

    def peep(self):
        return next(p for name, p in self.named_parameters() if name.startswith("words")).sum()


class Mean(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(40, 8), nn.Linear(8, 2)

    def forward(self, ids):
        return self.out(self.words(ids).mean(dim=1))


def test_where_no_other_way_to_write_a_model_is_known_there_is_no_twin():
    torch.manual_seed(0)
    with pytest.raises(Unsupported, match="has no twin"):
        twin(heedful.wrap(Peeping(), split))


def test_a_module_without_attention_has_its_word_vectors_in_other_coordinates():
    torch.manual_seed(0)
    model = heedful.wrap(Mean().double(), split)
    other = twin(model)
    np.testing.assert_allclose(other(TEXTS), model(TEXTS), rtol=0, atol=1e-12)
    assert distance(*(heedful.explain(m, TEXTS[0], "gradient-x-input", target=0).scores for m in (model, other))) > 0.01


def test_functions_and_bags_have_no_weights_to_rewrite():
    for model in (heedful.wrap(lambda texts: [[len(text)] for text in texts]), heedful.Bag([1.0, 2.0], [1.0, -1.0])):
        with pytest.raises(Unsupported, match="has no weights"):
            twin(model)
