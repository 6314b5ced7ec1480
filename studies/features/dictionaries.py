"""Trains the dictionaries that the studies of features read: of a bundled model, or of one that writes its own texts.

    python -m studies.features.dictionaries writer reviews --write-texts ../shared/data --out runs
    python -m studies.features.dictionaries writer --texts runs/writer.jsonl --k 16 --device cuda --out runs/dict
    python -m studies.features.dictionaries reviews --texts runs/reviews.jsonl --k 16 --device cuda --out runs/dict
    python -m studies.features.dictionaries runs/stories15m --own 3000 --out runs
    python -m studies.features.dictionaries runs/stories15m --texts runs/stories15m.jsonl --held-out 800 \
        --k 16 --rows 3000000 --out runs/dict

The first call writes the texts: unlabelled IMDB reviews, and for "reviews" also the training sentences of SST. A
language model that is asked for its own texts writes them from nothing. A tenth of the texts is held out.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import cpu_count, get_context
from pathlib import Path
from typing import Any

import torch

import heedful
from heedful.features.splice import measure_texts
from heedful.features.text_source import TextSource
from heedful.models import Model
from heedful.run_folder import write_atomically

_MODEL: list[Model] = []
_MOST_MEASURED, _PORTION = 300, 50


def main(given: Sequence[str] | None = None) -> None:
    """Trains one dictionary per model, and saves it with the texts that were held out."""
    arguments = _arguments(given)
    if arguments.write_texts:
        write_texts(Path(arguments.write_texts), arguments.models, Path(arguments.out))
        return
    if arguments.own:
        for name in arguments.models:
            path = Path(arguments.out) / f"{Path(name).name}.jsonl"
            write_lines(path, own_texts(name, arguments.own, arguments.seed))
        return
    command = f"python -m studies.features.dictionaries {' '.join(given or sys.argv[1:])}"
    for name in arguments.models:
        start = time.perf_counter()
        model = heedful.load(name, arguments.device)
        lines = Path(arguments.texts).read_text(encoding="utf-8").strip().split("\n")
        texts = [json.loads(line)["text"] for line in lines]
        n_held_out = arguments.held_out or len(texts) // 10
        held_out, texts = texts[:n_held_out], texts[n_held_out:]
        print(f"{name}: {len(texts):,} texts after {time.perf_counter() - start:.0f} s", flush=True)
        measured = held_out[:_MOST_MEASURED]
        _encode_side_by_side(model, [*texts, *measured])
        source = TextSource(model, arguments.layer, texts, seed=arguments.seed)
        print(f"{source.data}; {source.left_out} after {time.perf_counter() - start:.0f} s", flush=True)
        for k in arguments.k:
            dictionary = heedful.features.fit(
                source,
                arguments.width,
                arguments.kind,
                arguments.seed,
                progress=False,
                k=k,
                n_rows=arguments.rows,
                device=arguments.device,
            )
            out = Path(arguments.out) / f"{Path(name).name}-{k:g}"
            dictionary.save(out, half=True)
            print(f"{out}: {time.perf_counter() - start:.0f} s, {dictionary.density.gt(0).sum()} alive", flush=True)
            # What is stored in half precision is what is measured.
            stored = heedful.features.load(out, model)
            quality = measure_texts(stored, measured)
            card = replace(stored.card, metrics=quality.as_dict(), command=command, model_name=Path(name).name)
            replace(stored, card=card).save(out, half=True)
            print(quality.summary, flush=True)
        write_lines(Path(arguments.out) / f"{Path(name).name}-held-out.jsonl", held_out)


def write_texts(data: Path, names: Sequence[str], folder: Path) -> None:
    """Writes the texts that the dictionaries of bundled models are trained on; no IMDB test review is among them."""
    # A machine that trains may have no reader of parquet files.
    from studies.families.training import read_columns

    tested = {text.strip() for text in read_columns(data / "imdb/test.parquet", "text")[0]}
    unsup = (text.strip() for text in read_columns(data / "imdb/unsup.parquet", "text")[0])
    reviews = [text for text in dict.fromkeys(unsup) if text not in tested]
    rng = random.Random(0)
    rng.shuffle(reviews)
    sentences = [*dict.fromkeys(read_columns(data / "sst/sst_trees_train.parquet", "text")[0])]
    both = reviews[:12_000] + sentences
    rng.shuffle(both)
    texts = {"writer": reviews[:15_000], "reviews": both}
    for name in names:
        write_lines(folder / f"{name}.jsonl", texts[name])


def write_lines(path: Path, texts: Sequence[str]) -> None:
    """Writes texts as lines of JSON."""
    write_atomically(path, "".join(json.dumps({"text": text}) + "\n" for text in texts))


def own_texts(folder: str, n: int, seed: int) -> list[str]:
    """Texts that a language model of Hugging Face writes from nothing, drawn from its own distribution.

    A portion of 50 texts has random numbers of its own, so that the number of cores changes nothing.
    """
    portions = [(folder, seed, number) for number in range(-(-n // _PORTION))]
    with get_context("spawn").Pool(cpu_count()) as pool:
        texts = [text for own in pool.imap(_portion, portions) for text in own]
    return [text for text in texts if text][:n]


def _portion(given: tuple[str, int, int]) -> list[str]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, seed, number = given
    torch.set_num_threads(1)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    network: Any = AutoModelForCausalLM.from_pretrained(folder)
    torch.manual_seed(1_000_000 * seed + number)
    first = torch.full((_PORTION, 1), network.config.bos_token_id)
    ids = network.generate(
        first,
        attention_mask=torch.ones_like(first),
        do_sample=True,
        top_k=0,
        max_length=network.config.max_position_embeddings,
        pad_token_id=network.config.eos_token_id,
    )
    return [text.strip() for text in tokenizer.batch_decode(ids, skip_special_tokens=True)]


def _encode_side_by_side(model: Any, texts: Sequence[str]) -> None:
    """Tokenizes texts in a process per core, which changes nothing but the time; `encode` then looks them up."""
    _MODEL[:] = [heedful.load(model.network.name_or_path) if hasattr(model.network, "name_or_path") else model]
    with get_context("fork").Pool(cpu_count()) as pool:
        documents = dict(zip(texts, pool.map(_encoded, texts, chunksize=64), strict=True))
    encode = model.encode
    object.__setattr__(model, "encode", lambda text: documents[text] if text in documents else encode(text))


def _encoded(text: str) -> Any:
    return _MODEL[0].encode(text)


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", help="bundled names or folders")
    parser.add_argument("--texts", help="a file of lines of JSON with a text each")
    parser.add_argument("--write-texts", help="a folder of data; writes the texts to OUT and trains nothing")
    parser.add_argument("--own", type=int, default=0, help="writes so many texts of the model's own, trains nothing")
    parser.add_argument("--held-out", type=int, default=0, help="texts that are held out; default: a tenth")
    parser.add_argument("--layer", type=int, default=3)
    parser.add_argument("--width", type=int, default=2_048)
    parser.add_argument("--kind", default="matryoshka")
    parser.add_argument("--k", type=float, nargs="+", default=[32.0])
    parser.add_argument("--rows", type=int, default=12_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", required=True)
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
