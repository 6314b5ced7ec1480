"""Trains the encoder: a small BERT that calls film reviews negative or positive.

    python -m studies.families.encoder --data DIR --out runs/families/encoder [--device cuda] [--quick]

It first learns to guess hidden words (Devlin et al., 2019, arXiv:1810.04805) on the unlabelled and the training reviews
of IMDB, never on the test half, then the labels. Reviews are cut after `max_length` pieces.
Differs from BERT: no next-sentence task; a chosen piece always becomes [MASK], never a random or the same piece.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import final

import numpy as np
import torch
from jaxtyping import Int
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, PreTrainedTokenizerFast

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

FILES = ("imdb/train.parquet", "imdb/unsup.parquet", "imdb/test.parquet")
LABELS = ("negative", "positive")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, MASK = SPECIAL.index("[PAD]"), SPECIAL.index("[MASK]")


@final
@dataclass(frozen=True)
class Settings:
    """The size of the model and how to train it; `most_texts` limits each file for a quick run."""

    n_pieces: int = 16_000
    max_length: int = 384
    n_layers: int = 4
    n_heads: int = 4
    width: int = 192
    dropout: float = 0.1
    hidden_share: float = 0.15
    guessing: Schedule = field(default=Schedule(n_epochs=8, batch_size=128, learning_rate=1e-3, warmup_share=0.1))
    labelling: Schedule = field(default=Schedule(n_epochs=4, batch_size=64, learning_rate=2e-4, warmup_share=0.1))
    n_validation: int = 2_000
    most_texts: int | None = None
    seed: int = 0
    device: str = "cpu"


QUICK = Settings(
    n_pieces=300,
    max_length=32,
    n_layers=2,
    n_heads=2,
    width=16,
    guessing=Schedule(n_epochs=1, batch_size=16, learning_rate=1e-3, warmup_share=0.05),
    labelling=Schedule(n_epochs=2, batch_size=16, learning_rate=1e-3, warmup_share=0.05),
    n_validation=16,
    most_texts=64,
)


@final
@dataclass(frozen=True)
class Reviews:
    """Texts as piece numbers, with their labels."""

    ids: Int[Tensor, "batch token"]
    labels: Int[Tensor, "batch"]

    @classmethod
    def of(
        cls, tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], labels: Sequence[int], settings: Settings
    ) -> "Reviews":
        ids = token_numbers(tokenizer, texts, settings.max_length, PAD, settings.device)
        return cls(ids, torch.tensor(labels, device=settings.device))


def train(data: Path, out: Path, settings: Settings) -> dict[str, object]:
    """Trains, or resumes; leaves model, tokenizer and card in the folder, and returns the figures of the card."""
    known, free, test = (
        read_columns(data / name, *columns, most=settings.most_texts)
        for name, columns in zip(FILES, (("text", "label"), ("text",), ("text", "label")), strict=True)
    )
    files = describe_files(dict(zip(FILES, (known, free, test), strict=True)))
    everything = {"data": files, **asdict(settings)}
    texts, labels = known
    order = np.random.default_rng(settings.seed).permutation(len(texts))
    kept, held = order[settings.n_validation :], order[: settings.n_validation]
    unlabelled = free[0] + [texts[index] for index in kept]

    tokenizer = learn_pieces(unlabelled, settings)
    guesses = Reviews.of(tokenizer, unlabelled, [0] * len(unlabelled), settings)
    training, validation = (
        Reviews.of(tokenizer, [texts[i] for i in part], [labels[i] for i in part], settings) for part in (kept, held)
    )
    say(f"encoder: {len(unlabelled)} texts to guess in, {len(training.ids)} to learn the label of")
    with seeded(settings.seed):
        guesser = BertForMaskedLM(configuration(settings, len(tokenizer))).to(settings.device)
        model = BertForSequenceClassification(configuration(settings, len(tokenizer))).to(settings.device)

    def guess(ids: Int[Tensor, "batch token"]) -> Tensor:
        hidden = (torch.rand(ids.shape, device=ids.device) < settings.hidden_share) & (ids >= len(SPECIAL))
        states = guesser.bert(torch.where(hidden, MASK, ids), attention_mask=ids != PAD).last_hidden_state
        return cross_entropy(guesser.cls(states[hidden]).float(), ids[hidden])

    def guess_validation() -> float:
        with seeded(settings.seed):
            return float(torch.stack([guess(part) for part in validation.ids.split(256)]).mean())

    def label(batch: Int[Tensor, "batch"]) -> Tensor:
        ids = training.ids[batch]
        return cross_entropy(model(ids, attention_mask=ids != PAD).logits.float(), training.labels[batch])

    def guess_training(batch: Int[Tensor, "batch"]) -> Tensor:
        return guess(guesses.ids[batch])

    def accuracy() -> float:
        return right(model, validation).float().mean().item()

    n_guesses, n_labels, seed = len(guesses.ids), len(training.ids), settings.seed
    first = TrainingTask("guessing", guesser, n_guesses, guess_training, guess_validation, seed, everything)
    guessing = train_model(settings.guessing, first, out)
    model.bert.load_state_dict(guesser.bert.state_dict(), strict=False)  # the guesser has no pooler
    second = TrainingTask("labelling", model, n_labels, label, accuracy, seed, everything)
    labelling = train_model(settings.labelling, second, out)

    save_model(model, tokenizer, out)
    with torch.inference_mode():
        figures = {"validation_accuracy": accuracy()}
        figures |= measure(model, Reviews.of(tokenizer, *test, settings), test[0], set(texts))
    write_card(out, files, settings, figures, guessing, labelling)
    return figures


def learn_pieces(texts: Sequence[str], settings: Settings) -> PreTrainedTokenizerFast:
    """A WordPiece tokenizer of the texts, lower case; a line break written as a tag counts as a space.

    The pieces are those that a BPE of the texts uses most. The package's own WordPiece trainer numbers pieces in the
    order of a hash table, so that no two runs give the same; its BPE trainer always gives the same.
    """
    pairs = Tokenizer(models.BPE())
    pairs.normalizer = normalizers.Sequence(
        [normalizers.Replace("<br />", " "), normalizers.BertNormalizer(lowercase=True)]
    )
    pairs.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    sample = list(texts[:10_000])
    trainer = trainers.BpeTrainer(vocab_size=settings.n_pieces, show_progress=False, limit_alphabet=200)
    pairs.train_from_iterator(sample, trainer)
    uses: Counter[str] = Counter()
    for row in pairs.encode_batch(sample):
        words = row.word_ids
        uses.update(
            piece if word != before else f"##{piece}"
            for piece, word, before in zip(row.tokens, words, [None, *words], strict=False)
        )
    letters = sorted(piece for piece in pairs.get_vocab() if len(piece) == 1)
    order = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *sorted(uses, key=lambda p: (-uses[p], p))]
    vocabulary = {piece: number for number, piece in enumerate(list(dict.fromkeys(order))[: settings.n_pieces])}

    pieces = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    pieces.normalizer, pieces.pre_tokenizer = pairs.normalizer, pairs.pre_tokenizer
    pieces.decoder = decoders.WordPiece()
    ends = [(token, SPECIAL.index(token)) for token in ("[CLS]", "[SEP]")]
    pieces.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ends)
    return PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        model_max_length=settings.max_length,
        **{f"{token.strip('[]').lower()}_token": token for token in SPECIAL},
    )


def configuration(settings: Settings, n_pieces: int) -> BertConfig:
    return BertConfig(
        vocab_size=n_pieces,
        hidden_size=settings.width,
        num_hidden_layers=settings.n_layers,
        num_attention_heads=settings.n_heads,
        intermediate_size=4 * settings.width,
        max_position_embeddings=settings.max_length,
        hidden_dropout_prob=settings.dropout,
        attention_probs_dropout_prob=settings.dropout,
        id2label=dict(enumerate(LABELS)),
        label2id={name: number for number, name in enumerate(LABELS)},
    )


def right(model: BertForSequenceClassification, reviews: Reviews) -> Tensor:
    """Of every review, whether the larger logit is the label's."""
    guesses = [model(ids, attention_mask=ids != PAD).logits.argmax(dim=1) for ids in reviews.ids.split(256)]
    return torch.cat(guesses) == reviews.labels


def measure(
    model: BertForSequenceClassification, test: Reviews, texts: Sequence[str], seen: set[str]
) -> dict[str, object]:
    """Accuracy on the whole test half, and on its texts that neither repeat nor occur in the training half."""
    first = {text: index for index, text in reversed(list(enumerate(texts)))}
    distinct = [index for text, index in first.items() if text not in seen]
    hits = right(model, test).float()
    return {
        "n_test": len(hits),
        "test_accuracy": hits.mean().item(),
        "n_distinct_test": len(distinct),
        "distinct_test_accuracy": hits[distinct].mean().item(),
    }


def main() -> None:
    arguments = parse_arguments(__doc__)
    train(arguments.data, arguments.out, replace(QUICK if arguments.quick else Settings(), device=arguments.device))


if __name__ == "__main__":
    main()
