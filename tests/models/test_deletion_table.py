import numpy as np
import torch

from heedful.target import Target


def test_deleted_words_give_the_output_of_the_shorter_text(tiny):
    words = ["good", "film", "bad", "plot", "good"]
    document = tiny.encode(" ".join(words))
    table = tiny.deletion_table(document, Target(1, tiny.classes[1]).weights(len(tiny.classes)))
    keep = np.random.default_rng(0).random((20, len(words))) < 0.6
    values = table.deleted(torch.from_numpy(np.column_stack([np.ones(20, dtype=bool), keep])))
    texts = [" ".join(word for word, kept in zip(words, row, strict=True) if kept) for row in keep]
    assert np.allclose(values, tiny(texts)[:, 1], atol=1e-9)
