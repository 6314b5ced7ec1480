"""Trains the decoder: a small Llama with grouped-query attention that writes film reviews.

    python -m studies.families.decoder --data DIR --out runs/families/decoder [--device cuda] [--quick]

It learns the unlabelled reviews of IMDB, strung together and cut into pieces of `context` tokens; the last
`n_validation` reviews of the file are kept aside, and what it is surprised by in them is the figure of the card.
Every review begins with <|endoftext|>, which the tokenizer puts before any text it is given.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from math import exp, log
from pathlib import Path
from typing import final

import numpy as np
import torch
from jaxtyping import Int
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from heedful.models.training_loop import Schedule, seeded
from studies.families.training import (
    TrainingTask,
    describe_files,
    parse_arguments,
    read_columns,
    save_model,
    say,
    train_model,
    write_card,
)

FILE = "imdb/unsup.parquet"
END = "<|endoftext|>"
OPENINGS = ("This movie is", "The acting was", "I watched this film because", "The worst part of")


@final
@dataclass(frozen=True)
class Settings:
    """The size of the model and how to train it; `most_texts` limits the file for a quick run."""

    n_pieces: int = 8_192
    context: int = 256
    n_layers: int = 6
    n_heads: int = 8
    n_key_heads: int = 2
    width: int = 256
    inner_width: int = 704
    schedule: Schedule = field(
        default=Schedule(n_epochs=10, batch_size=64, learning_rate=1e-3, weight_decay=0.1, warmup_share=0.05)
    )
    n_validation: int = 1_000
    most_texts: int | None = None
    seed: int = 0
    device: str = "cpu"


QUICK = Settings(
    n_pieces=300,
    context=64,
    n_layers=2,
    n_heads=4,
    width=16,
    inner_width=32,
    schedule=Schedule(n_epochs=2, batch_size=8, learning_rate=1e-3, warmup_share=0.05),
    n_validation=8,
    most_texts=64,
)


def train(data: Path, out: Path, settings: Settings) -> dict[str, object]:
    """Trains, or resumes; leaves model, tokenizer and card in the folder, and returns the figures of the card."""
    (texts,) = read_columns(data / FILE, "text", most=settings.most_texts)
    files = describe_files({FILE: [texts]})
    known = texts[: -settings.n_validation]
    held = sorted(set(texts[-settings.n_validation :]) - set(known))
    tokenizer = learn_pieces(known, settings)
    blocks, held_blocks = strung(tokenizer, known, settings), strung(tokenizer, held, settings)
    say(f"decoder: {blocks.numel():,} tokens to learn, {held_blocks.numel():,} to validate with")
    with seeded(settings.seed):
        model = LlamaForCausalLM(configuration(settings, tokenizer)).to(settings.device)

    def surprise(ids: Int[Tensor, "batch token"]) -> Tensor:
        return model(ids, labels=ids).loss

    def mean_surprise() -> float:
        parts = held_blocks.split(64)
        return sum(surprise(part).item() * len(part) for part in parts) / len(held_blocks)

    task = TrainingTask(
        name="decoder",
        model=model,
        n_examples=len(blocks),
        loss=lambda batch: surprise(blocks[batch]),
        validate=lambda: exp(mean_surprise()),
        seed=settings.seed,
        settings={"data": files, **asdict(settings)},
    )
    epochs = train_model(settings.schedule, task, out)

    save_model(model, tokenizer, out)
    with torch.inference_mode():
        nats = mean_surprise()
    n_bytes = sum(len(text.encode()) for text in held)
    figures = {
        "n_validation": len(held),
        "validation_perplexity": exp(nats),
        "validation_bits_per_byte": nats * held_blocks.numel() / n_bytes / log(2),
        "continuations": continuations(model, tokenizer, settings),
    }
    write_card(out, files, settings, figures, epochs)
    return figures


def learn_pieces(texts: Sequence[str], settings: Settings) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of the texts; a line break written as a tag becomes one."""
    pieces = Tokenizer(models.BPE())
    pieces.normalizer = normalizers.Replace("<br />", "\n")
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=settings.n_pieces,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    pieces.train_from_iterator(texts[:20_000], trainer)
    pieces.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(f"{END} $A", None, [(END, 0)])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        model_max_length=settings.context,
        model_input_names=["input_ids", "attention_mask"],
        bos_token=END,
        eos_token=END,
        pad_token=END,
        clean_up_tokenization_spaces=False,
    )


def strung(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], settings: Settings) -> Int[Tensor, "batch token"]:
    """All texts one after the other, cut into equal pieces; the end that fills no piece is dropped."""
    rows = tokenizer.backend_tokenizer.encode_batch(list(texts))
    line = np.concatenate([np.array(row.ids) for row in rows])
    n_blocks = len(line) // settings.context
    return torch.from_numpy(line[: n_blocks * settings.context]).view(n_blocks, -1).to(settings.device)


def configuration(settings: Settings, tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.width,
        intermediate_size=settings.inner_width,
        num_hidden_layers=settings.n_layers,
        num_attention_heads=settings.n_heads,
        num_key_value_heads=settings.n_key_heads,
        max_position_embeddings=settings.context,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def continuations(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, settings: Settings) -> list[str]:
    """How the model goes on from a few openings, drawn from its 40 likeliest next tokens at every step."""
    written = []
    for opening in OPENINGS:
        given = tokenizer(opening, return_tensors="pt").to(settings.device)
        with seeded(settings.seed):
            ids = model.generate(**given, max_new_tokens=40, do_sample=True, top_k=40)
        written.append(tokenizer.decode(ids[0], skip_special_tokens=True))
    return written


def main() -> None:
    arguments = parse_arguments(__doc__)
    train(arguments.data, arguments.out, replace(QUICK if arguments.quick else Settings(), device=arguments.device))


if __name__ == "__main__":
    main()
