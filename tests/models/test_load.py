"""What can be loaded and wrapped, and what bad input is answered with."""

import json
import warnings

import numpy as np
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

import heedful
from heedful.errors import BadCheckpoint, BadInput, HeedfulError, Offline, Unsupported
from heedful.target import ClassNames, resolve_target
from tests.families import PAIR, TEXTS, build, network_of, pictures, split, texts_for, word_pieces


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    network, tokenizer = network_of("bert")
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_folder_is_loaded_in_single_precision_with_the_network_s_outputs(folder):
    model = heedful.load(str(folder))
    ids = torch.from_numpy(model.encode(TEXTS[0]).ids)[None]
    with torch.no_grad():
        expected = model.network(input_ids=ids).logits.numpy()
    assert np.allclose(model([TEXTS[0]]), expected, atol=1e-6)
    assert model.network.dtype == torch.float32
    assert model.classes == ("bad", "good", "neutral")


@pytest.mark.parametrize("precision", ["bfloat16", "float16", "float64"])
def test_other_precisions_work(folder, precision):
    model, full = heedful.load(str(folder), precision=precision), heedful.load(str(folder))
    for method in ("rollout", "gradient-attention", "gradient-l2", "attention-mean", "value-norms"):
        ours, theirs = (heedful.explain(m, TEXTS[1], method, target=1).scores for m in (model, full))
        assert np.abs(ours - theirs).max() <= 0.1 * np.abs(theirs).max()


def test_a_quantised_model_shows_attention_and_refuses_gradients_in_a_sentence():
    network, tokenizer = network_of("bert")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = torch.ao.quantization.quantize_dynamic(network.eval(), {torch.nn.Linear}, dtype=torch.qint8)
    model = heedful.wrap(small, tokenizer)
    assert heedful.explain(model, TEXTS[0], "rollout").scores.sum() > 0
    with pytest.raises(Unsupported, match="No gradient flows"):
        heedful.explain(model, TEXTS[0], "gradient-l2")


def test_a_missing_model_is_one_sentence():
    with pytest.raises(Offline, match="There is no model 'no-such/model'.*cannot be reached"):
        heedful.load("no-such/model")


def test_a_damaged_folder_is_one_sentence(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"not a model")
    with pytest.raises(BadCheckpoint, match="damaged|not a complete"):
        heedful.load(str(tmp_path))
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(HeedfulError):
        heedful.load(str(tmp_path))


def test_weights_that_are_no_numbers_are_refused(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = load_file(folder / "model.safetensors")
    weights["classifier.weight"][0, 0] = float("nan")
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(BadInput, match=r"not all finite numbers \(classifier.weight\)"):
        heedful.load(str(tmp_path))


def test_a_model_without_a_scalar_to_explain_is_refused(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["BertForPreTraining"]}))
    with pytest.raises(Unsupported, match="BertForPreTraining"):
        heedful.load(str(tmp_path))


def test_a_text_beyond_the_limit_is_cut_and_says_so():
    for family in ("bert", "gpt2", "llama", "bart"):
        model = build(family)
        explanation = heedful.explain(model, "good film " * 100, "attention-mean")
        assert any("tokens were read; the text is longer than the model's limit" in note for note in explanation.notes)


def test_a_pair_where_one_text_is_wanted_is_refused(tiny):
    for model in (tiny, build("transformer"), build("torch"), heedful.wrap(lambda texts: [[1.0]] * len(texts))):
        with pytest.raises(BadInput, match="reads one text; a pair was given"):
            heedful.explain(model, PAIR, "leave-one-out")
    with pytest.raises(BadInput, match="reads images"):
        heedful.explain(build("vit"), PAIR, "rollout")


def test_a_pair_has_units_of_both_texts():
    explanation = heedful.explain(build("bert"), PAIR, "gradient-x-input", unit="sentence")
    assert explanation.units == ("the film was good .", "a dull plot")
    assert set(explanation.facts) >= {"[CLS]", "[SEP]"}
    assert heedful.Explanation.from_dict(explanation.as_dict()).units == explanation.units


def test_the_second_text_of_a_pair_has_its_own_segment():
    model = build("bert")
    document = model.encode(PAIR)
    tokens = word_pieces()(PAIR.first, PAIR.second, return_tensors="pt")
    assert document.segments.tolist() == tokens["token_type_ids"][0].tolist()
    with torch.no_grad():
        assert np.allclose(model([PAIR])[0], model.network(**tokens).logits[0].numpy(), atol=1e-12)


def test_attention_that_cannot_be_recorded_is_refused_and_gradients_still_work():
    with warnings.catch_warnings():
        # transformers compiles parts of DeBERTa in a way that torch has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        network, tokenizer = network_of("deberta")
    model = heedful.wrap(network.double().eval(), tokenizer)
    assert len(heedful.explain(model, TEXTS[0], "gradient-l2").scores) == 5
    with pytest.raises(Unsupported, match="does not use transformers' attention interface"):
        heedful.explain(model, TEXTS[0], "rollout")
    comparison = heedful.compare(model, TEXTS[0], ["gradient-l2", "rollout"])
    assert [e.method for e in comparison.explanations] == ["gradient-l2"]


def test_a_model_without_attention_offers_none():
    network = torch.nn.Sequential(torch.nn.Embedding(40, 6), torch.nn.Flatten(1), torch.nn.LazyLinear(2))
    network(torch.zeros(1, 2, dtype=torch.long))
    model = heedful.wrap(network, split)
    with pytest.raises(Unsupported, match="rollout needs layers"):
        heedful.explain(model, "good film", "rollout")
    assert heedful.explain(model, "good film", "gradient-l2").scores.min() > 0


def test_a_picture_is_a_file_an_image_or_an_array(tmp_path):
    from PIL import Image

    model, (array, *_) = build("vit"), pictures()
    Image.fromarray(array).save(tmp_path / "a.png")
    given = [str(tmp_path / "a.png"), tmp_path / "a.png", Image.fromarray(array), array]
    assert len({model([form]).tobytes() for form in given}) == 1
    assert heedful.explain(model, array, "rollout").unit == "patch"
    assert heedful.explain(model, str(tmp_path / "a.png"), "rollout").document.text == "a.png"
    for wrong in ("nowhere.png", array.astype(float), array[..., :2], 3):
        with pytest.raises(BadInput, match="image"):
            model.encode(wrong)
    with pytest.raises(BadInput, match="does not fit"):
        heedful.explain(build("bert"), TEXTS[0], "rollout", unit="patch")


def test_a_function_is_explained_by_perturbation_alone():
    asked = []

    def score(texts):
        asked.extend(texts)
        return [[text.count("good"), -text.count("dull")] for text in texts]

    model = heedful.wrap(score, classes=["good", "dull"], replacement="…")
    explanation = heedful.explain(model, "good, dull film!", "leave-one-out", target="good")
    assert dict(zip(explanation.units, explanation.scores.tolist(), strict=True)) == {
        "good": 1.0,
        ",": 0.0,
        "dull": 0.0,
        "film": 0.0,
        "!": 0.0,
    }
    assert "…, dull film!" in asked
    heedful.explain(model, "good film", "leave-one-out", absence="delete")
    assert " film" in asked
    able = {name for name, member in heedful.methods().items() if member.needs <= {"masks"}}
    assert able > {"anchors", "hierarchical-shapley", "leave-one-out", "lime", "occlusion", "slalom", "sobol"}
    assert {e.method for e in heedful.compare(model, "good film", "all").explanations} == able
    with pytest.raises(Unsupported, match="gradient-l2 needs gradients"):
        heedful.explain(model, "good film", "gradient-l2")


def test_a_function_that_gives_no_scores_is_refused():
    for function in (lambda _: 3.0, lambda texts: ["a"] * len(texts), lambda _: [[1.0]] * 7):
        with pytest.raises(BadInput, match="The function"):
            heedful.wrap(function)
    with pytest.raises(BadInput, match="2 scores per text, but 1 classes"):
        heedful.wrap(lambda texts: [[0.0, 1.0]] * len(texts), classes=["one"])
    with pytest.raises(BadInput, match="or a function; int was given"):
        heedful.wrap(3)


def test_a_module_is_wrapped_with_a_tokenizer():
    with pytest.raises(BadInput, match="needs its tokenizer"):
        heedful.wrap(network_of("bert")[0])
    with pytest.raises(BadInput, match="a function that splits a text into tokens"):
        heedful.wrap(torch.nn.Linear(2, 2))


def test_a_number_is_a_number_even_where_a_class_spells_it():
    names = ClassNames(["a", "b", "c", "2"])
    assert resolve_target(2, None, names, np.zeros(4)).index == 2
    assert resolve_target("2", None, names, np.zeros(4)).index == 3


def test_a_contrast_with_the_predicted_class_needs_no_target():
    model = build("bert")
    predicted = int(model([TEXTS[0]])[0].argmax())
    other = (predicted + 1) % 3
    assert heedful.explain(model, TEXTS[0], "gradient-l2", against=other).target.index == predicted


def test_a_checkpoint_without_a_head_is_not_given_a_random_one(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = {name: w for name, w in load_file(folder / "model.safetensors").items() if "classifier" not in name}
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(BadCheckpoint, match=r"lacks weights of BertForSequenceClassification \(classifier"):
        heedful.load(str(tmp_path))


def test_the_words_of_a_module_enter_where_their_numbers_are_looked_up():
    class Late(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.places = torch.nn.Embedding(64, 8)
            self.words = torch.nn.Embedding(40, 8)
            self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
            self.out = torch.nn.Linear(8, 2)

        def forward(self, ids):
            x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
            return self.out(self.attention(x, x, x)[0][:, 0])

    torch.manual_seed(0)
    network = Late().double()
    model = heedful.wrap(network, split)
    ids = torch.tensor([[number for number, _, _ in split("good film")]])
    with torch.no_grad():
        assert np.allclose(model(["good film"]), network(ids).numpy(), atol=1e-12)
    assert network.training
    assert heedful.explain(model, "good film", "rollout").scores.sum() == pytest.approx(1)


def test_a_pair_that_the_tokenizer_does_not_separate_is_refused():
    for family in ("gpt2", "gpt2-classifier"):
        with pytest.raises(BadInput, match="a pair"):
            heedful.explain(build(family), PAIR, "rollout")


def test_a_decoder_without_padding_classifies_batches():
    network, tokenizer = network_of("gpt2-classifier")
    network.config.pad_token_id = None
    model = heedful.wrap(network.double().eval(), tokenizer)
    together = model(TEXTS)
    assert np.allclose(together, np.concatenate([model([text]) for text in TEXTS]), atol=1e-10)
    assert network.config.pad_token_id is None


def test_the_next_token_is_named_with_or_without_its_space():
    model = build("gpt2")
    by_name = heedful.explain(model, "the film was", "gradient-l2", target="good")
    assert by_name.target.name == " good"
    assert model.classes[by_name.target.index] == " good"
    with pytest.raises(BadInput, match="'zebra' is not one of the model's"):
        heedful.explain(model, "the film was", "gradient-l2", target="zebra")


def test_a_bare_encoder_explains_its_vector():
    network = hf.BertModel(network_of("bert")[0].config).double().eval()
    model = heedful.wrap(network, word_pieces())
    assert len(model.classes) == 16
    assert model([TEXTS[0]]).shape == (1, 16)
    assert len(heedful.explain(model, TEXTS[0], "rollout").scores) == 5


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "vit", "transformer"])
def test_a_log_probability_is_the_logarithm_of_a_probability(family):
    model, text = build(family), texts_for(family)[0]
    logits = model([text])[0]
    chances = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    explanation = heedful.explain(model, text, "leave-one-out", target=1, scale="log-probability")
    assert explanation.output == pytest.approx(np.log(chances[1]), abs=1e-9)
    assert str(explanation.target).startswith("the log-probability of")


def test_a_single_logit_is_a_class_and_its_probability_a_sigmoid():
    model = build("single-logit")
    logit = model([TEXTS[0]])[0, 0]
    explanation = heedful.explain(model, TEXTS[0], "gradient-l2", scale="log-probability")
    assert explanation.output == pytest.approx(-np.log1p(np.exp(-logit)), abs=1e-9)
