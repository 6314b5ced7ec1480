"""Prompts of 12 sources with what a model wrote after them, for enumeration: 30 of stories15m, 30 of SmolLM2.

`python -m benchmarks.generation.cases stories MODEL --out FILE` and `… reviews MODEL --out FILE`

A story's prompt is 12 words of a text that the model itself sampled; its sources are the words. A review's prompt is
a review of IMDB in 12 passages, about 500 tokens with the question; its sources are the passages.
"""

import argparse
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import torch

import heedful
from heedful.document import Document, Unit
from heedful.generation.prompt import read_prompt

N_CASES = 30
N_SOURCES = 12
QUESTION = "What does the reviewer think of the film, and why?"
N_OUTPUT = {"stories": 16, "reviews": 24}


@dataclass(frozen=True)
class Case:
    """A prompt as token ids, the source of each token (−1 outside), and the output as token ids."""

    ids: list[int]
    sources: list[int]
    output: list[int]
    prompt: str
    passages: list[str] | None = None

    @property
    def n_sources(self) -> int:
        return max(self.sources) + 1


def read_cases(file: Path) -> list[Case]:
    """The cases that `main` wrote."""
    return [Case(**record) for record in json.loads(file.read_text(encoding="utf-8"))]


def stories(model: Any) -> Iterator[Case]:
    """Texts sampled with one seed each: the 12 words after the first sentence, since nearly all begin alike."""
    seed = 0
    while True:
        torch.manual_seed(seed)
        begin = torch.tensor([[model.tokenizer.bos_token_id]])
        row = model.network.generate(begin, max_new_tokens=60, do_sample=True, top_k=0)[0]
        text = model.tokenizer.decode(row, skip_special_tokens=True).partition(". ")[2]
        seed += 1
        if text.strip() and len(spans := model.encode(text).word_spans) > N_SOURCES:
            prompt = text[: spans[N_SOURCES - 1][1]]
            yield _case(model, model.encode(prompt), "word", prompt, None)


def reviews(model: Any) -> Iterator[Case]:
    """Reviews of IMDB's test set of a suitable length, in the order of the file."""
    file = Path(os.environ["HEEDFUL_DATA"]) / "imdb" / "test.parquet"
    for text in parquet.read_table(file, columns=["text"]).column("text").to_pylist():
        passages = _passages(re.sub(r"\s*<br />\s*", " ", text).strip())
        if passages and 350 <= sum(len(passage.split()) for passage in passages) <= 420:
            document = read_prompt(model, QUESTION, passages)
            if 460 <= len(document.ids) <= 560:
                yield _case(model, document, "passage", QUESTION, passages)


def _passages(text: str) -> list[str]:
    """A text's sentences in 12 groups of similar length; none if it has fewer than 12 sentences."""
    sentences = re.split(r"(?<=[.!?])\s+", text)
    ends = np.cumsum([len(sentence) for sentence in sentences])
    group = np.minimum((ends - 1) * N_SOURCES // max(1, int(ends[-1])), N_SOURCES - 1)
    if len(set(group.tolist())) < N_SOURCES:
        return []
    return [" ".join(s for s, g in zip(sentences, group, strict=True) if g == n) for n in range(N_SOURCES)]


def _case(model: Any, document: Document, unit: Unit, prompt: str, passages: list[str] | None) -> Case:
    n_output = N_OUTPUT["stories" if passages is None else "reviews"]
    with torch.inference_mode():
        row = model.network.generate(
            torch.from_numpy(document.ids)[None],
            attention_mask=torch.ones(1, len(document.ids), dtype=torch.long),
            max_new_tokens=n_output,
            min_new_tokens=n_output,
            do_sample=False,
        )[0]
    output = row[len(document.ids) :].tolist()
    return Case(document.ids.tolist(), document.unit_of(unit).tolist(), output, prompt, passages)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["stories", "reviews"])
    parser.add_argument("model")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    model = heedful.load(asked.model)
    cases = (stories if asked.kind == "stories" else reviews)(model)
    found = [next(cases) for _ in range(N_CASES)]
    asked.out.write_text(json.dumps([asdict(case) for case in found]), encoding="utf-8")


if __name__ == "__main__":
    main()
