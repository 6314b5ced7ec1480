"""Whether the name that is shown for a next token explains that very token, on contexts of real text.

python -m benchmarks.token_names FOLDER                 a causal language model; needs the reviews (HEEDFUL_DATA)
python -m benchmarks.token_names FOLDER --gguf FILE     one that is stored as GGUF (needs gguf and accelerate)
"""

import argparse

import numpy as np
import torch

import heedful
from heedful.datasets.imdb import Imdb
from heedful.errors import BadInput
from heedful.models import Model
from heedful.models.hf.next_token import TokenNames
from heedful.target import Names, resolve_target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--gguf")
    parser.add_argument("--contexts", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = heedful.load(options.folder) if options.gguf is None else _from_gguf(options.folder, options.gguf)
    firsts, right, numbered, told, ambiguous, names = set(), 0, 0, 0, 0, model.target_names(None)
    for context in _contexts(options.contexts):
        row = model([context])[0]
        names = model.target_names(model.encode(context))
        first = int(row.argmax())
        shown = resolve_target(None, None, names, row).name
        firsts.add(first)
        right += resolve_target(shown, None, names, row).index == first
        numbered += shown.endswith(f"(id:{first})")
        both = _refused(names, row, shown.split(" (id:")[0].strip())
        ambiguous += both is not None
        told += both is not None and all(f"number {number}," in both[0] for number in both[1])
    every = all(_reached(names, number) for number in range(len(names)))
    print(f"{options.contexts} contexts, {len(firsts)} tokens ranked first")
    print(f"the name shown explains that very token: {right}; shown with its number: {numbered}")
    print(f"the name without its space is ambiguous: {ambiguous}; refused with all candidates: {told}")
    print(f"every one of {len(names):,} tokens reached by its number and by the name shown: {every}")


def _contexts(n: int) -> list[str]:
    """The start of a review each, up to a random character: after a word, a space, a mark, or inside of a word."""
    rng, texts = np.random.default_rng(0), Imdb().examples("test")
    chosen = rng.choice(len(texts), n, replace=False)
    return [texts[number].text[: rng.integers(20, 200)] for number in chosen]


def _refused(names: Names, row: np.ndarray, name: str) -> tuple[str, list[int]] | None:
    """The error for a name that means several tokens, and those tokens."""
    meanings = list(names.meanings(name)) if name else []
    if len(meanings) < 2:
        return None
    try:
        resolve_target(name, None, names, row)
    except BadInput as error:
        return str(error), meanings
    return "", meanings


def _reached(names: Names, number: int) -> bool:
    assert isinstance(names, TokenNames)
    return names.meanings(f"id:{number}") == [number] and names.meanings(names.shown(number)) == [number]


def _from_gguf(folder: str, file: str) -> Model:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    network = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    return heedful.wrap(network.eval(), AutoTokenizer.from_pretrained(folder, gguf_file=file))


if __name__ == "__main__":
    main()
