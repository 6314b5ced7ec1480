"""One tiny model of every family, built from a config, with weights nobody trained."""

from functools import cache
from typing import Any

import numpy as np
import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn

import heedful
from heedful.document import SPECIAL as NO_WORD
from heedful.models import Model
from heedful.models.encoder.classifier import EncoderClassifier
from heedful.models.encoder.network import EncoderConfig
from heedful.models.encoder.word_pieces import SPECIAL_PIECES, WordPieces
from heedful.models.hf.gpt2 import gpt2_of
from heedful.models.question import ask
from heedful.models.transformer import Transformer, TransformerConfig, initial_network
from heedful.models.vocabulary import Vocabulary
from studies.reviews.initial import initial_encoder
from tests.conftest import WORDS
from tests.models.classic.models import classic

CORPUS = [
    "the film was good and very bright .",
    "a bad story , but not a dull plot !",
    "an actor was not very good ; the plot was bad ?",
    "unbelievable actors and unforgettable storytelling",
] * 3
TEXTS = ["the film was good .", "a very bad unbelievable story , but not dull !", "good film"]
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAIR = heedful.Pair("the film was good .", "a dull plot")

SMALL: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 24}
LABELS: dict[str, Any] = {
    "id2label": {0: "bad", 1: "good", 2: "neutral"},
    "label2id": {"bad": 0, "good": 1, "neutral": 2},
}


@cache
def word_pieces() -> hf.PreTrainedTokenizerFast:
    """WordPiece with lower-casing, as BERT has."""
    # Spelt out: training one gives other pieces in every process.
    letters = sorted(set("".join(CORPUS)) - {" "})
    short = sorted({word for text in CORPUS for word in text.split() if len(word) < 7})
    known = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *short, "##able", "##ing", "story", "un"]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(known))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


@cache
def byte_pairs() -> hf.PreTrainedTokenizerFast:
    """Byte-level byte pairs without special tokens around a text, as GPT-2 has."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=330, special_tokens=["<|end|>"], initial_alphabet=alphabet)
    )
    return hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", bos_token="<|end|>")


@cache
def pieces() -> hf.PreTrainedTokenizerFast:
    """Unigram over ▁ with an end token, as T5 has."""
    letters = sorted(set("".join(CORPUS)) - {" "})
    short = sorted({f"▁{word}" for text in CORPUS for word in text.split() if len(word) < 7})
    scores = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("<s>", 0.0), ("▁", -4.0)]
    scores += [(piece, -8.0) for piece in letters] + [(piece, -2.0) for piece in short]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=2))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", eos_token="</s>", bos_token="<s>"
    )


@cache
def build(family: str) -> Model:
    """The family's model in double precision, its attention far from uniform."""
    torch.manual_seed(0)
    if family == "transformer":
        config = TransformerConfig(3, True, True, "gelu", n_heads=2, T_max=24, d_e=8, d_att=4, d_out=4, n_classes=3)
        vocabulary = Vocabulary(("[cls]", "[unk]", *WORDS))
        return Transformer(
            loud(initial_network(config, len(vocabulary), 0)).double(), vocabulary, ["bad", "good", "neutral"]
        )
    if family == "classic":
        return classic(d_e=8, T_max=24)
    if family == "encoder":
        config = EncoderConfig(depth=3, n_heads=4, T_max=24, d_e=16, d_hidden=24, n_classes=3)
        known = WordPieces((*SPECIAL_PIECES, *word_pieces().convert_ids_to_tokens(range(5, len(word_pieces())))))
        network = loud(initial_encoder(config, len(known), 0)).double().eval()
        return EncoderClassifier(network, known, ["bad", "good", "neutral"])
    if family == "own-gpt2":
        return gpt2_of(loud(network_of("gpt2")[0]).double().eval(), byte_pairs())
    if family == "torch":
        return heedful.wrap(loud(Encoder()).double().eval(), split, classes=["bad", "good"])
    if family in ("vit", "deit"):
        kind = hf.ViTForImageClassification if family == "vit" else hf.DeiTForImageClassificationWithTeacher
        network = kind(hf_config(family, image_size=16, patch_size=4, **SMALL, **LABELS))
        size = {"height": 16, "width": 16}
        return heedful.wrap(loud(network).double().eval(), hf.ViTImageProcessor(size=size))
    network, tokenizer = network_of(family)
    return heedful.wrap(loud(network).double().eval(), tokenizer)


def network_of(family: str) -> tuple[Any, Any]:
    wp, bp, sp = word_pieces(), byte_pairs(), pieces()
    room = {"max_position_embeddings": 64}
    grouped = {**SMALL, **room, "vocab_size": len(bp), "num_key_value_heads": 2, "eos_token_id": 0, "bos_token_id": 0}
    both = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "pad_token_id": 0}
    both |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "vocab_size": len(sp), **room}
    both |= {"eos_token_id": 1, "bos_token_id": 3, "decoder_start_token_id": 0, "forced_eos_token_id": None}
    gpt2 = {
        "n_embd": 16,
        "n_layer": 3,
        "n_head": 4,
        "n_positions": 64,
        "vocab_size": len(bp),
        "eos_token_id": 0,
        "bos_token_id": 0,
    }
    distil = {"dim": 16, "n_layers": 3, "n_heads": 4, "hidden_dim": 24, "vocab_size": len(wp), **room}
    make = {
        "bert": (
            lambda: hf.BertForSequenceClassification(hf_config("bert", vocab_size=len(wp), **SMALL, **room, **LABELS)),
            wp,
        ),
        "distilbert": (lambda: hf.DistilBertForSequenceClassification(hf.DistilBertConfig(**distil, **LABELS)), wp),
        "roberta": (
            lambda: hf.RobertaForSequenceClassification(
                hf_config("roberta", vocab_size=len(wp), type_vocab_size=2, pad_token_id=0, **SMALL, **room, **LABELS)
            ),
            wp,
        ),
        "albert": (
            lambda: hf.AlbertForSequenceClassification(
                hf_config("albert", vocab_size=len(wp), embedding_size=8, **SMALL, **room, **LABELS)
            ),
            wp,
        ),
        "single-logit": (
            lambda: hf.BertForSequenceClassification(
                hf_config("bert", vocab_size=len(wp), num_labels=1, **SMALL, **room)
            ),
            wp,
        ),
        "deberta": (
            lambda: hf.DebertaV2ForSequenceClassification(
                hf_config("deberta-v2", vocab_size=len(wp), **SMALL, **room, **LABELS)
            ),
            wp,
        ),
        "gpt2": (lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**gpt2)), bp),
        "gpt2-classifier": (
            lambda: hf.GPT2ForSequenceClassification(hf.GPT2Config(**gpt2, pad_token_id=1, **LABELS)),
            bp,
        ),
        "llama": (lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**grouped)), bp),
        "mistral": (lambda: hf.MistralForCausalLM(hf.MistralConfig(**grouped, sliding_window=8)), bp),
        "qwen": (lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**grouped)), bp),
        "t5": (
            lambda: hf.T5ForConditionalGeneration(
                hf.T5Config(
                    d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4, vocab_size=len(sp), decoder_start_token_id=0
                )
            ),
            sp,
        ),
        "bart": (lambda: hf.BartForConditionalGeneration(hf.BartConfig(**both)), sp),
        "marian": (lambda: hf.MarianMTModel(hf.MarianConfig(**both, scale_embedding=True)), sp),
    }
    network, tokenizer = make[family]
    return network(), tokenizer


def hf_config(kind: str, **settings: Any) -> Any:
    return hf.AutoConfig.for_model(kind, **settings)


def masked_model(room: int = 64) -> tuple[Any, Any]:
    """A masked language model that nobody trained, with a vocabulary of word pieces; and its tokenizer."""
    torch.manual_seed(0)
    config = hf_config("bert", vocab_size=len(word_pieces()), max_position_embeddings=room, **SMALL)
    return loud(hf.BertForMaskedLM(config)), word_pieces()


def loud(network: Any) -> Any:
    """Weights several times as large as they are drawn, lest attention be uniform and every gradient nearly zero."""
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.dim() > 1 and "norm" not in name.lower():
                weight *= 6 / (1 + 6 * weight.std() * weight.shape[-1] ** 0.5) if weight.std() > 0 else 1
                weight *= 4
    return network


class Encoder(nn.Module):
    """A classifier of torch's own encoder layers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 24, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(16, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.encoder(self.words(ids)).mean(dim=1))


def split(text: str) -> list[tuple[int, int, int]]:
    """Words at spaces, each with a number made of its letters."""
    tokens, end = [], 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        tokens.append((1 + sum(map(ord, word)) % 39, start, end))
    return tokens


def pictures() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 255, (16, 16, 3), dtype=np.uint8) for _ in range(3)]


def texts_for(family: str) -> list[Any]:
    if family in ("vit", "deit"):
        return pictures()
    if family in ("t5", "bart", "marian"):
        return [heedful.Pair(TEXTS[0], "a bad"), heedful.Pair(TEXTS[1], "good plot , not"), TEXTS[2]]
    return list(TEXTS)


ENCODERS = ["bert", "distilbert", "roberta", "albert", "single-logit", "gpt2-classifier"]
DECODERS = ["gpt2", "own-gpt2", "llama", "mistral", "qwen"]
BOTH = ["t5", "bart", "marian"]
VISION = ["vit", "deit"]
FAMILIES = [*ENCODERS, *DECODERS, *BOTH, *VISION, "transformer", "classic", "encoder", "torch"]
CHANGEABLE = [family for family in FAMILIES if family != "own-gpt2"]
"""Families whose table of word vectors can be changed: the output of our GPT-2 shares it."""


def asked(model):
    """A class that no model keeps at zero, as some do the logit of their padding token."""
    return heedful.Target(n := min(7, len(model.classes) - 1), model.classes[n])


def answers(model, text):
    """What a model says to a text, by every way of asking."""
    question = ask(model, [text], target=asked(model))
    (document,), (target,) = question.documents, question.targets
    keep = np.random.default_rng(0).random((4, len(document.ids))) < 0.5
    keep |= document.words == NO_WORD
    return {
        "predict": model([text]),
        "masked": model.masked(document, target, keep, "replace"),
        "gradient": question.gradient.gradients,
        "attention": model.attention([document]),
    }
