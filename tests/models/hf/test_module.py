from copy import deepcopy

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import nn

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.models.altered import scrambled
from heedful.models.hf.module import CustomModule, returned_by_graph
from heedful.models.twins.twin import twin
from tests.families import TEXTS, loud, network_of

TEXT = TEXTS[1]
HEADS = {"mean and max": 2, "two layers": 2}


class Mine(nn.Module):
    """An encoder, a pooling and a head, as people write them."""

    def __init__(self, pooling="mean", n_outputs=2, last=None, encoder=None):
        super().__init__()
        torch.manual_seed(0)
        self.encoder = loud(network_of("bert")[0]).bert if encoder is None else encoder
        self.pooling, self.last = pooling, last
        self.head = nn.Sequential(nn.Linear(16 * HEADS.get(pooling, 1), 8), nn.GELU(), nn.Linear(8, n_outputs))
        self.double().eval()

    def outputs(self, attention_mask, **given):
        states = self.encoder(attention_mask=attention_mask, output_hidden_states=True, **given)
        h, mask = states.last_hidden_state, attention_mask[..., None].double()
        mean = (h * mask).sum(dim=1) / mask.sum(dim=1)
        most = h.masked_fill(mask == 0, -1e9).amax(dim=1)
        pooled = {
            "first": h[:, 0],
            "mean": mean,
            "max": most,
            "last": h[torch.arange(len(h)), attention_mask.sum(dim=1) - 1],
            "mean and max": torch.cat([mean, most], dim=-1),
            "two layers": torch.cat([h[:, 0], states.hidden_states[-2][:, 0]], dim=-1),
            "padding too": h.mean(dim=1),
        }[self.pooling]
        logits = self.head(pooled)
        return logits if self.last is None else self.last(logits)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        return self.outputs(attention_mask, input_ids=input_ids, token_type_ids=token_type_ids)


class Keywords(Mine):
    def forward(self, **batch):
        return {"logits": self.outputs(**batch)}


class Batch(Mine):
    def forward(self, batch):
        return self.outputs(batch.attention_mask, input_ids=batch["input_ids"])


@pytest.fixture(scope="module")
def tokenizer():
    return network_of("bert")[1]


@pytest.fixture(scope="module")
def mean(tokenizer):
    return heedful.wrap(Mine(), tokenizer)


def run(module, tokenizer, ids):
    """The module's own output for one row of token ids."""
    given = {"input_ids": torch.tensor([ids]), "token_type_ids": torch.zeros(1, len(ids), dtype=torch.long)}
    with torch.no_grad():
        return module.outputs(torch.ones(1, len(ids), dtype=torch.long), **given)[0].numpy()


@pytest.mark.parametrize("kind", [Mine, Keywords, Batch])
@pytest.mark.parametrize("pooling", ["first", "mean", "last", "padding too"])
def test_logits_are_the_module_s_however_it_is_called(tokenizer, kind, pooling):
    module = kind(pooling)
    model = heedful.wrap(module, tokenizer)
    expected = [run(module, tokenizer, tokenizer(text)["input_ids"]) for text in TEXTS]
    assert np.allclose(model(TEXTS), expected, atol=1e-9)
    assert model.ragged == (pooling != "padding too")
    read_from = {"first": "the first token", "last": "the last token"}.get(pooling, "the mean of all tokens")
    assert f"{kind.__name__} around BertModel" in repr(model)
    assert f"read from {read_from}; returns logits of 2 classes (class 0, class 1)" in repr(model)


def test_words_are_whole_and_pairs_have_their_segments(tokenizer, mean):
    assert heedful.explain(mean, TEXT, "leave-one-out").units[3] == "unbelievable"
    pair = heedful.Pair("the film was good .", "a dull plot")
    given = tokenizer(pair.first, pair.second, return_tensors="pt")
    with torch.no_grad():
        assert np.allclose(mean([pair]), mean.network.module(**given), atol=1e-9)


@pytest.mark.parametrize("pooling", ["first", "mean", "last"])
def test_attention_is_that_of_the_encoder(tokenizer, pooling):
    module = Mine(pooling)
    model = heedful.wrap(module, tokenizer)
    plain = deepcopy(module.encoder)
    plain.set_attn_implementation("eager")
    ids = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        maps = torch.cat(plain(**ids, output_attentions=True).attentions).numpy()
    document = model.encode(TEXT)
    assert np.allclose(model.maps(document), maps, atol=1e-9)
    rows = {"first": maps[:, :, 0], "mean": maps.mean(axis=2), "last": maps[:, :, -1]}[pooling]
    assert np.allclose(model.attention([document])[0], rows, atol=1e-9)


def test_gradients_are_those_at_inputs_embeds(tokenizer, mean):
    module, ids = mean.network.module, tokenizer(TEXT, return_tensors="pt")
    e = module.encoder.get_input_embeddings()(ids["input_ids"]).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(module.outputs(ids["attention_mask"], inputs_embeds=e)[0, 1], e)
    explanation = heedful.explain(mean, TEXT, "gradient-l1", target=1, unit="token")
    assert np.allclose(explanation.scores, gradient[0, 1:-1].abs().sum(dim=-1), atol=1e-9)


@pytest.mark.parametrize("pooling", ["mean", "padding too"])
@pytest.mark.parametrize("absence", ["replace", "delete"])
def test_masked_texts_are_hand_made_token_ids(tokenizer, pooling, absence):
    module = Mine(pooling)
    model = heedful.wrap(module, tokenizer)
    ids, words = tokenizer(TEXT)["input_ids"], model.encode(TEXT).words
    expected = []
    for word in range(words.max() + 1):
        gone = {"replace": [tokenizer.mask_token_id], "delete": []}[absence]
        kept = [n for number, w in zip(ids, words, strict=True) for n in (gone if w == word else [number])]
        expected.append(run(module, tokenizer, ids)[0] - run(module, tokenizer, kept)[0])
    explanation = heedful.explain(model, TEXT, "leave-one-out", target=0, absence=absence)
    assert np.allclose(explanation.scores, expected, atol=1e-9)


def test_where_padding_counts_a_list_of_texts_gives_the_scores_of_each_alone(tokenizer):
    model = heedful.wrap(Mine("padding too"), tokenizer)
    together = heedful.explain(model, TEXTS, "gradient-l2", target=0)
    for text, explanation in zip(TEXTS, together, strict=True):
        assert np.allclose(explanation.scores, heedful.explain(model, text, "gradient-l2", target=0).scores, atol=1e-12)
    assert "padding changes its outputs" in repr(model)
    with pytest.raises(Unsupported, match="Padding changes"):
        heedful.explain(model, TEXT, "leave-one-out", absence="mask")


@pytest.mark.parametrize("pooling", ["max", "mean and max", "two layers"])
def test_attention_is_withheld_where_it_is_unknown_whose_counts(tokenizer, pooling):
    model = heedful.wrap(Mine(pooling), tokenizer)
    assert model.offers == {"gradients", "masks"}
    assert "no attention: The output is" in repr(model)
    assert len(repr(model)) <= 300
    with pytest.raises(Unsupported, match="unknown whose attention counts"):
        heedful.explain(model, TEXT, "rollout")
    heedful.explain(model, TEXT, "gradient-l2")


@pytest.mark.parametrize("squeeze", [False, True])
def test_a_single_logit_is_one_score_with_a_sigmoid(tokenizer, squeeze):
    module = Mine(n_outputs=1, last=(lambda logits: logits.squeeze()) if squeeze else None)
    model = heedful.wrap(module, tokenizer, classes=["spam"])
    logits = [float(run(Mine(n_outputs=1), tokenizer, tokenizer(text)["input_ids"])[0]) for text in TEXTS]
    assert np.allclose(model(TEXTS)[:, 0], logits, atol=1e-9)
    explanation = heedful.explain(model, TEXT, "leave-one-out", scale="probability")
    assert explanation.output == pytest.approx(expit(logits[1]))
    assert "returns a single logit, whose sigmoid is a probability (spam)" in repr(model)


@pytest.mark.parametrize(
    ("n_outputs", "last", "returns"),
    [
        (1, torch.sigmoid, "probabilities"),
        (3, torch.sigmoid, "probabilities"),
        (3, lambda logits: logits.softmax(dim=-1), "probabilities"),
        (3, lambda logits: logits.log_softmax(dim=-1), "logits"),
    ],
)
def test_probabilities_are_known_by_the_last_operation(tokenizer, n_outputs, last, returns):
    assert heedful.wrap(Mine(n_outputs=n_outputs, last=last), tokenizer).returns == returns
    x = torch.ones(2, 3, requires_grad=True)
    assert returned_by_graph(last(x)[:, :2]) == returns


def test_a_module_can_be_copied_rewritten_and_scrambled(mean):
    assert np.allclose(twin(mean)(TEXTS), mean(TEXTS), atol=1e-9)
    assert np.abs(scrambled(mean)(TEXTS) - mean(TEXTS)).max() > 1e-3


def test_padding_that_counts_is_found_behind_a_large_bias_or_a_saturated_sigmoid(tokenizer):
    for shift, last in ((100.0, None), (12.0, torch.sigmoid)):
        for pooling, ragged in (("padding too", False), ("mean", True)):
            module = Mine(pooling, last=last)
            with torch.no_grad():
                module.head[-1].bias += shift
            assert heedful.wrap(module, tokenizer).ragged == ragged


class Parts(Mine):
    """Calls the parts of its encoder one by one."""

    def forward(self, input_ids):
        return self.head(self.encoder.encoder(self.encoder.embeddings(input_ids)).last_hidden_state.mean(dim=1))


class Tuples(Mine):
    """Asks for tuples, and reads the layer before the last from them."""

    def forward(self, input_ids, attention_mask):
        given = {"return_dict": False, "output_hidden_states": True}
        _, _, states = self.encoder(input_ids, attention_mask, **given)
        return self.head(states[-2][:, 0] + states[-1][:, 0])


class Direct(Mine):
    """Calls `forward` of its encoder, which passes hooks by."""

    def forward(self, input_ids, attention_mask):
        states = self.encoder.forward(input_ids, attention_mask).last_hidden_state
        return self.head(states.amax(dim=1) if self.pooling == "max" else states.mean(dim=1))


@pytest.mark.parametrize(("module", "offered"), [(Tuples(), False), (Direct("max"), False), (Direct("mean"), True)])
def test_the_reading_is_found_however_the_encoder_is_called(tokenizer, module, offered):
    assert ("attention" in heedful.wrap(module, tokenizer).offers) == offered


def test_attention_is_withheld_if_the_encoder_is_not_called_as_a_whole(tokenizer):
    model = heedful.wrap(Parts(), tokenizer)
    assert model.offers == {"gradients", "masks"}


class TwoArguments(Mine):
    def forward(self, ids, mask):
        return self.outputs(mask, input_ids=ids)


class Copies(Mine):
    def forward(self, input_ids, attention_mask):
        return self.outputs(attention_mask, input_ids=input_ids.clone())


class Fails(Mine):
    def forward(self, input_ids):
        raise RuntimeError("no such thing")


class Siamese(Mine):
    def __init__(self):
        super().__init__()
        self.other = deepcopy(self.encoder)


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (lambda: Mine(last=lambda logits: (logits, logits)), "must return logits of shape .* it returned tuple"),
        (lambda: Mine(last=lambda logits: logits[:, None]), r"it returned shape \(1, 1, 2\)"),
        (TwoArguments, "forward of TwoArguments takes ids, mask; it must take input_ids, attention_mask, token_type"),
        (Copies, "copies or cuts its token ids"),
        (Fails, "Fails failed on tensors of its tokenizer with RuntimeError: no such thing"),
        (Siamese, "must contain one Hugging Face model; it contains BertModel, BertModel"),
        (lambda: nn.Linear(2, 2), "Linear must contain one Hugging Face model; it contains none"),
        (lambda: Mine(encoder=network_of("t5")[0]), "contains T5ForConditionalGeneration, which is not an encoder"),
    ],
)
def test_a_module_that_cannot_be_explained_is_refused_in_a_sentence(tokenizer, module, sentence):
    with pytest.raises((BadInput, Unsupported), match=sentence):
        heedful.wrap(module(), tokenizer)


def test_a_wrong_number_of_class_names_is_refused(tokenizer):
    with pytest.raises(BadInput, match="returns 2 outputs, but 3 classes were named"):
        heedful.wrap(Mine(), tokenizer, classes=["a", "b", "c"])


def test_the_encoder_s_table_and_configuration_are_the_module_s(mean):
    network = mean.network
    assert isinstance(network, CustomModule)
    assert network.get_input_embeddings() is network.module.encoder.get_input_embeddings()
    assert network.config is network.module.encoder.config
