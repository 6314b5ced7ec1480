"""Every family's trainer on synthetic data: a folder that the Auto classes load, and the same bytes after a stop."""

import importlib
import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="the trainers read parquet")
transformers = pytest.importorskip("transformers", reason="the families are Hugging Face models")
Image = pytest.importorskip("PIL.Image", reason="the vision model reads JPEG")

import pyarrow.parquet  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

from heedful.models.training_loop import seeded  # noqa: E402
from studies.families import training  # noqa: E402
from studies.families.augmentation import cropped, mixed  # noqa: E402
from studies.families.parcel import pack, unpack  # noqa: E402

FAMILIES = ("encoder", "decoder", "translator", "vision")
WORDS = ("the", "film", "was", "good", "bad", "very", "not", "dull", "bright", "story", "and", "but", "plot", "actor")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)

    def sentences(n: int) -> list[str]:
        return [" ".join(rng.choice(WORDS, size=12)) + "!<br />" for _ in range(n)]

    def picture() -> bytes:
        file = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(file, "JPEG")
        return file.getvalue()

    def write(name: str, columns: dict, **metadata: str) -> None:
        path = folder / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        table = pa.table(columns)
        pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), path)

    for part in ("train", "test"):
        write(f"imdb/{part}", {"text": sentences(32), "label": [0, 1] * 16})
    write("imdb/unsup", {"text": sentences(40)})
    for part in ("train", "validation", "test_2016_flickr"):
        write(f"multi30k_ende/{part}", {"en": sentences(24), "de": sentences(24)})
    for part in ("train", "validation"):
        columns = {"jpeg": [picture() for _ in range(16)], "label": [0, 1] * 8}
        write(f"tiny_imagenet_16c/{part}", columns, classes="cup|kettle")
    return folder


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory) -> dict[str, Path]:
    """Every family trained from the command line, without a stop."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEEDFUL_DATA", str(data))
        for name in FAMILIES:
            patch.setattr(sys, "argv", [name, "--out", str(folder / name), "--quick"])
            importlib.import_module(f"studies.families.{name}").main()
    return {name: folder / name for name in FAMILIES}


@pytest.mark.slow
def test_the_auto_classes_load_the_encoder(trained):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(trained["encoder"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(trained["encoder"])
    given = tokenizer("The GOOD film<br />was dull", return_tensors="pt")
    assert tokenizer.convert_ids_to_tokens(given["input_ids"][0])[:4] == ["[CLS]", "the", "good", "film"]
    assert model(**given).logits.isfinite().all()
    assert model.config.id2label == {0: "negative", 1: "positive"}


def test_the_auto_classes_load_the_decoder(trained):
    model = transformers.AutoModelForCausalLM.from_pretrained(trained["decoder"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(trained["decoder"])
    given = tokenizer("the film<br />was", return_tensors="pt")
    assert given["input_ids"][0, 0] == tokenizer.bos_token_id
    assert tokenizer.decode(given["input_ids"][0], skip_special_tokens=True) == "the film\nwas"
    assert model(**given).logits.isfinite().all()
    assert model.config.num_key_value_heads < model.config.num_attention_heads


def test_the_auto_classes_load_the_translator(trained):
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(trained["translator"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(trained["translator"])
    given = tokenizer(["the film was good", "dull"], return_tensors="pt", padding=True)
    assert tokenizer.batch_decode(given["input_ids"], skip_special_tokens=True) == ["the film was good", "dull"]
    written = model.generate(**given)
    assert (written[:, 0] == model.config.decoder_start_token_id).all()
    assert model(**given, decoder_input_ids=written).logits.isfinite().all()


def test_the_auto_classes_load_the_vision_model(trained):
    model = transformers.AutoModelForImageClassification.from_pretrained(trained["vision"])
    processor = transformers.AutoImageProcessor.from_pretrained(trained["vision"])
    given = processor(Image.new("RGB", (80, 70), (255, 0, 0)), return_tensors="pt")
    assert given["pixel_values"].shape == (1, 3, 64, 64)
    assert given["pixel_values"].amin() == -1
    assert given["pixel_values"].amax() == 1
    assert model(**given).logits.isfinite().all()
    assert model.config.id2label == {0: "cup", 1: "kettle"}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_stopped_run_resumes_to_the_same_bytes(name, data, trained, tmp_path, monkeypatch):
    family = importlib.import_module(f"studies.families.{name}")
    messages = []

    def stop_after_two_lines(line: str) -> None:
        messages.append(line)
        if len(messages) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training, "say", stop_after_two_lines)
        patch.setattr(family, "say", stop_after_two_lines)
        # The state outside must not matter, nor be changed.
        before = torch.random.get_rng_state()
        with pytest.raises(KeyboardInterrupt):
            family.train(data, tmp_path, family.QUICK)
        assert torch.equal(before, torch.random.get_rng_state())
    torch.rand(1)
    assert not (tmp_path / "model.safetensors").exists()
    family.train(data, tmp_path, family.QUICK)
    assert (tmp_path / "model.safetensors").read_bytes() == (trained[name] / "model.safetensors").read_bytes()
    with pytest.raises(ValueError, match="contains another run, which differs in seed"):
        family.train(data, tmp_path, replace(family.QUICK, seed=1))


def test_a_card_says_what_was_done(trained):
    for name in FAMILIES:
        card = json.loads((trained[name] / "card.json").read_text(encoding="utf-8"))
        assert card["settings"]["seed"] == 0
        assert card["figures"]
        assert all(file["n_rows"] > 0 for file in card["data"].values())
        assert card["seconds"] >= 0


@pytest.mark.parametrize("name", FAMILIES)
def test_a_parcel_loses_nothing_and_leaves_the_state_behind(name, trained, tmp_path):
    pack(trained[name], tmp_path / "it.tar")
    unpack(tmp_path / "it.tar", tmp_path / "it")
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (trained[name], tmp_path / "it"))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(weight, theirs[key]) for key, weight in ours.items())
    assert {path.name for path in (tmp_path / "it").iterdir()} == {
        path.name for path in trained[name].iterdir() if path.name != "state"
    }


def test_mixing_keeps_the_shares_in_step_with_the_pictures():
    pictures = torch.eye(4)[:, :, None, None].expand(4, 4, 64, 64)
    with seeded(0):
        for _ in range(10):
            seen, shares = mixed(pictures, torch.eye(4))
            torch.testing.assert_close(seen.mean(dim=(2, 3)), shares)


def test_a_crop_of_a_ramp_is_a_ramp_rising_or_falling():
    pictures = torch.linspace(-1, 1, 64).expand(16, 3, 64, 64)
    with seeded(0):
        steps = cropped(pictures, 0.2)[..., 1:-1].diff(dim=-1).flatten(1)
    rising, falling = (steps > 0).all(dim=1), (steps < 0).all(dim=1)
    assert (rising | falling).all()
    assert rising.any()
    assert falling.any()
