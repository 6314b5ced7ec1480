import json

import heedful
from studies.features.dictionaries import main, write_lines
from tests.cli.features.conftest import LINES


def test_a_dictionary_is_saved_with_its_metrics_on_the_texts_that_were_held_out(tmp_path):
    texts = [f"{line} This is number {number}." for number in range(4) for line in LINES]
    write_lines(tmp_path / "texts.jsonl", texts)
    size = ["--width", "16", "--k", "4", "--rows", "1000", "--out", str(tmp_path)]
    main(["writer", "--texts", str(tmp_path / "texts.jsonl"), *size])
    model = heedful.load("writer")
    dictionary = heedful.features.load(tmp_path / "writer-4", model)
    lines = (tmp_path / "writer-held-out.jsonl").read_text(encoding="utf-8").splitlines()
    held_out = [json.loads(line)["text"] for line in lines]
    assert held_out == texts[: len(texts) // 10]
    assert dictionary.card.metrics == heedful.features.measure(dictionary, texts=held_out).as_dict()
    assert dictionary.card.command.endswith(f"--out {tmp_path}")
