"""Learns the vocabulary and packs the reviews as token ids, so that they can travel to another machine.

python -m studies.writer.prepare --data DIR --out runs/writer
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np

from heedful.models.language.bpe import learn_byte_pairs
from heedful.models.language.file import vocabulary_as_text
from heedful.run_folder import write_atomically
from studies.families.training import say
from studies.writer.corpus import Reviews, pack, read_reviews

N_TOKENS = 7_680
N_HELD = 1_000


def prepare(reviews: Reviews, n_tokens: int, out: Path) -> None:
    """Leaves vocabulary.json, the packed splits and corpus.json in the folder."""
    out.mkdir(parents=True, exist_ok=True)
    vocabulary = learn_byte_pairs(reviews.train, n_tokens)
    write_atomically(out / "vocabulary.json", json.dumps(vocabulary_as_text(vocabulary)))
    about: dict[str, object] = {"n_tokens": n_tokens, "end": vocabulary.special[0], "n_tested": reviews.n_tested}
    for split, texts in (("train", reviews.train), ("held_out", reviews.held_out), ("test", reviews.test)):
        ids = [np.array(vocabulary.encode(text), dtype=np.int64) for text in texts]
        paths = pack(ids, out / split)
        about[split] = {
            "n_texts": len(texts),
            "n_ids": sum(map(len, ids)),
            "n_words": sum(len(text.split()) for text in texts),
            "n_bytes": sum(len(text.encode()) for text in texts),
            "packed": [path.stat().st_size for path in paths],
        }
        say(f"{split}: {about[split]}")
    write_atomically(out / "corpus.json", json.dumps(about, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("HEEDFUL_DATA", ".")))
    parser.add_argument("--out", type=Path, default=Path("runs/writer"))
    given = parser.parse_args()
    prepare(read_reviews(given.data, N_HELD, 0), N_TOKENS, given.out)


if __name__ == "__main__":
    main()
