"""Trains the translator: a small BART, encoder and decoder, from English to German.

    python -m studies.families.translator --data DIR --out runs/families/translator [--device cuda] [--quick]

It learns the 29,000 captions of Multi30k (Elliott et al., 2016, arXiv:1605.00459) from nothing, without BART's
denoising, and is measured on the Flickr test set of 2016 by greedy decoding. Both languages share one BPE.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import final

import torch
from jaxtyping import Float, Int
from sacrebleu import corpus_bleu
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import BartConfig, BartForConditionalGeneration, GenerationConfig, PreTrainedTokenizerFast

from heedful.models.training_loop import Schedule, seeded
from studies.families.training import (
    TrainingTask,
    describe_files,
    parse_arguments,
    read_columns,
    save_model,
    say,
    token_numbers,
    train_model,
    write_card,
)

FILES = tuple(f"multi30k_ende/{part}.parquet" for part in ("train", "validation", "test_2016_flickr"))
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
BOS, PAD, EOS = 0, 1, 2


@final
@dataclass(frozen=True)
class Settings:
    """The size of the model and how to train it; `most_texts` limits each file for a quick run."""

    n_pieces: int = 8_000
    max_length: int = 64
    n_layers: int = 3
    n_heads: int = 4
    width: int = 256
    inner_width: int = 512
    dropout: float = 0.3
    smoothing: float = 0.1
    schedule: Schedule = field(default=Schedule(n_epochs=40, batch_size=128, learning_rate=6e-4, warmup_share=0.1))
    most_texts: int | None = None
    seed: int = 0
    device: str = "cpu"


QUICK = Settings(
    n_pieces=200,
    max_length=24,
    n_layers=2,
    n_heads=2,
    width=16,
    inner_width=32,
    schedule=Schedule(n_epochs=2, batch_size=8, learning_rate=1e-3, warmup_share=0.05),
    most_texts=64,
)


@final
@dataclass(frozen=True)
class Pairs:
    """Sentences as piece numbers; `given` is `wanted` moved one place to the right, as the decoder reads it."""

    english: Int[Tensor, "batch token"]
    given: Int[Tensor, "batch token"]
    wanted: Int[Tensor, "batch token"]

    @classmethod
    def of(
        cls, tokenizer: PreTrainedTokenizerFast, english: Sequence[str], german: Sequence[str], settings: Settings
    ) -> "Pairs":
        source, target = (
            token_numbers(tokenizer, texts, settings.max_length, PAD, settings.device) for texts in (english, german)
        )
        given = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], dim=1)
        # The end is predicted but never read, so that a decoder's input is what generate would have fed it.
        return cls(source, torch.where(given == EOS, PAD, given), target)

    def __getitem__(self, batch: Int[Tensor, "batch"]) -> "Pairs":
        """Some of the pairs, no wider than the longest of them."""
        english, given, wanted = self.english[batch], self.given[batch], self.wanted[batch]
        n_english, n_german = (int((ids != PAD).sum(dim=1).max()) for ids in (english, wanted))
        return Pairs(english[:, :n_english], given[:, :n_german], wanted[:, :n_german])


def train(data: Path, out: Path, settings: Settings) -> dict[str, object]:
    """Trains, or resumes; leaves model, tokenizer and card in the folder, and returns the figures of the card."""
    known, held, test = (read_columns(data / name, "en", "de", most=settings.most_texts) for name in FILES)
    files = describe_files(dict(zip(FILES, (known, held, test), strict=True)))
    tokenizer = learn_pieces([*known[0], *known[1]], settings)
    training, validation = (Pairs.of(tokenizer, *pair, settings) for pair in (known, held))
    say(f"translator: {len(training.english)} pairs to learn, {len(validation.english)} to validate with")
    with seeded(settings.seed):
        model = BartForConditionalGeneration(configuration(settings, len(tokenizer))).to(settings.device)
    model.generation_config = GenerationConfig(
        max_length=settings.max_length,
        bos_token_id=BOS,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
    )

    def loss(batch: Int[Tensor, "batch"]) -> Tensor:
        pairs = training[batch]
        return cross_entropy(
            logits(model, pairs).flatten(0, 1),
            pairs.wanted.flatten(),
            ignore_index=PAD,
            label_smoothing=settings.smoothing,
        )

    task = TrainingTask(
        name="translator",
        model=model,
        n_examples=len(training.english),
        loss=loss,
        validate=lambda: token_accuracy(model, validation),
        seed=settings.seed,
        settings={"data": files, **asdict(settings)},
    )
    epochs = train_model(settings.schedule, task, out)

    save_model(model, tokenizer, out)
    testing = Pairs.of(tokenizer, *test, settings)
    translations = translate(model, tokenizer, testing.english)
    with torch.inference_mode():
        accuracy = token_accuracy(model, testing)
    figures = {
        "validation_bleu": corpus_bleu(translate(model, tokenizer, validation.english), [held[1]]).score,
        "test_2016_bleu": corpus_bleu(translations, [test[1]]).score,
        "test_2016_token_accuracy": accuracy,
        "translations": [list(row) for row in zip(test[0], translations, test[1], strict=True)][:6],
    }
    write_card(out, files, settings, figures, epochs)
    return figures


def learn_pieces(texts: Sequence[str], settings: Settings) -> PreTrainedTokenizerFast:
    """One BPE tokenizer of both languages; a piece that begins a word begins with ▁."""
    pieces = Tokenizer(models.BPE(unk_token="<unk>"))
    pieces.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])
    pieces.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
    pieces.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=settings.n_pieces, special_tokens=list(SPECIAL), show_progress=False, limit_alphabet=150
    )
    pieces.train_from_iterator(texts, trainer)
    pieces.post_processor = processors.TemplateProcessing("$A </s>", None, [("</s>", EOS)])
    return PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        model_max_length=settings.max_length,
        model_input_names=["input_ids", "attention_mask"],
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )


def configuration(settings: Settings, n_pieces: int) -> BartConfig:
    return BartConfig(
        vocab_size=n_pieces,
        d_model=settings.width,
        max_position_embeddings=settings.max_length,
        encoder_layers=settings.n_layers,
        decoder_layers=settings.n_layers,
        encoder_attention_heads=settings.n_heads,
        decoder_attention_heads=settings.n_heads,
        encoder_ffn_dim=settings.inner_width,
        decoder_ffn_dim=settings.inner_width,
        dropout=settings.dropout,
        bos_token_id=BOS,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )


def logits(model: BartForConditionalGeneration, pairs: Pairs) -> Float[Tensor, "batch token class"]:
    """For every place of the translation, the logits of the piece to come when all before it are right."""
    return model(pairs.english, attention_mask=pairs.english != PAD, decoder_input_ids=pairs.given).logits.float()


def token_accuracy(model: BartForConditionalGeneration, pairs: Pairs) -> float:
    """The share of pieces that are the likeliest when all before them are right."""
    n_right = n_real = 0
    for batch in torch.arange(len(pairs.wanted), device=pairs.wanted.device).split(256):
        part = pairs[batch]
        real = part.wanted != PAD
        n_right += ((logits(model, part).argmax(dim=-1) == part.wanted) & real).sum().item()
        n_real += real.sum().item()
    return n_right / n_real


def translate(
    model: BartForConditionalGeneration, tokenizer: PreTrainedTokenizerFast, english: Int[Tensor, "batch token"]
) -> list[str]:
    """Greedy translations."""
    written = (model.generate(ids, attention_mask=ids != PAD) for ids in english.split(250))
    return [text for ids in written for text in tokenizer.batch_decode(ids, skip_special_tokens=True)]


def main() -> None:
    arguments = parse_arguments(__doc__)
    train(arguments.data, arguments.out, replace(QUICK if arguments.quick else Settings(), device=arguments.device))


if __name__ == "__main__":
    main()
