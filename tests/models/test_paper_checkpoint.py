"""The bundled model, as shipped."""

import hashlib
import re
import subprocess
import sys
from importlib.resources import files

import pytest

from heedful.datasets.imdb import Imdb

HOME = files("heedful.models") / "checkpoints"


@pytest.mark.slow
def test_accuracy_on_all_25_000_test_reviews_is_at_least_the_authors(paper, data_folder):
    examples = Imdb().examples("test")
    predicted = paper([example.text for example in examples]).argmax(axis=1)
    right = sum(int(label) == example.label for label, example in zip(predicted, examples, strict=True))
    assert len(examples) == 25_000
    accuracy = right / 25_000
    assert accuracy >= 0.80
    assert f"**{accuracy:.2%}** on all 25,000 texts" in (HOME / "paper.md").read_text()


def test_card_names_the_file_by_its_hash_and_it_is_small():
    content = (HOME / "paper.safetensors").read_bytes()
    assert len(content) <= 16_000_000
    stated = re.search(r"`([0-9a-f]{64})`", (HOME / "paper.md").read_text())
    assert stated
    assert stated[1] == hashlib.sha256(content).hexdigest()


def test_card_names_the_fingerprint_of_the_model(paper):
    assert f"`{paper.fingerprint}`" in (HOME / "paper.md").read_text()


def test_it_has_the_paper_s_sizes(paper):
    config = paper.network.config
    sizes = (config.n_heads, config.T_max, config.d_e, config.d_att, config.d_out, config.n_classes)
    assert sizes == (6, 256, 128, 64, 64, 2)
    assert paper.classes == ("negative", "positive")


@pytest.mark.slow
def test_it_loads_in_under_a_second_once_torch_is_there():
    code = "import time, torch, heedful; t = time.perf_counter(); heedful.load('paper'); print(time.perf_counter() - t)"
    # Again only if other work delayed it.
    done = (subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3))
    assert any(float(run.stdout) < 1 for run in done)
