"""Small models, data and files that commands use and that cases damage; made once, in a temporary folder."""

import atexit
import json
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import heedful
from benchmarks.reliability.inputs import WORDS
from heedful.models.network import Config, Network
from heedful.models.single_layer import SingleLayer
from heedful.models.training import initial_weights
from heedful.models.transformer import Transformer, TransformerConfig, initial_network
from heedful.models.transformer_file import save_transformer
from heedful.models.vocabulary import Vocabulary

TEXT = "a fine film , but far too long"
TEXTS = (TEXT, "the plot was dull and the actor awful", "good music , great story !", "not bad")


@cache
def workshop() -> Path:
    """The folder, removed at the end: the models `tiny`, `layers.safetensors` and `bert`; texts; `data` with imdb."""
    folder = Path(tempfile.mkdtemp(prefix="heedful-fuzz-"))
    atexit.register(_remove, folder, os.getpid())
    (folder / "tiny").mkdir()
    single_layer().save(folder / "tiny" / "model.safetensors", {"command": "none"})
    save_transformer(_layers(), folder / "layers.safetensors")
    _save_bert(folder / "bert")
    heedful.explain(heedful.load(str(folder / "tiny")), TEXT, "lime", n_samples=50).save(folder / "explanation.json")
    _write_texts(folder)
    _write_data(folder / "data")
    return folder


def _remove(folder: Path, owner: int) -> None:
    # Forked processes leave it to the one that made it.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def vocabulary() -> Vocabulary:
    """The words of the random texts."""
    return Vocabulary(("[cls]", "[unk]", ".", ",", "!", *dict.fromkeys(WORDS)))


def single_layer() -> SingleLayer:
    """The paper's model with few and untrained weights."""
    config, words = Config(n_heads=2, T_max=24, d_e=8, d_att=4, d_out=4), vocabulary()
    weights = {name: 4 * weight for name, weight in initial_weights(config, len(words), seed=0).items()}
    return SingleLayer(Network(config, weights).double(), words, ["negative", "positive"])


def _layers() -> Transformer:
    config = TransformerConfig(depth=2, n_heads=2, T_max=24, d_e=8)
    words = vocabulary()
    return Transformer(initial_network(config, len(words), seed=0).eval(), words, ["negative", "positive"])


def _save_bert(folder: Path) -> None:
    """A Hugging Face folder with a tiny BERT and its tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast
    from transformers.utils.logging import disable_progress_bar, enable_progress_bar

    names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", "!", *dict.fromkeys(WORDS))
    tokenizer = Tokenizer(models.WordPiece({name: number for number, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = {f"{name.strip('[]').lower()}_token": name for name in names[:5]}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(names),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=64,
    )
    state = torch.get_rng_state()
    torch.manual_seed(0)
    disable_progress_bar()
    BertForSequenceClassification(config).save_pretrained(folder)
    enable_progress_bar()
    torch.set_rng_state(state)


def _write_texts(folder: Path) -> None:
    (folder / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    rows = [{"text": text, "label": number % 2} for number, text in enumerate(TEXTS)]
    (folder / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "strange.jsonl").write_text('{"text": 3}\n[]\n{"text": "good film", "label": "x"}', encoding="utf-8")
    (folder / "others.jsonl").write_text(
        json.dumps({"text": TEXT, "name": "mine", "scores": [0.1] * 8}), encoding="utf-8"
    )
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "empty").write_bytes(b"")


def _write_data(folder: Path) -> None:
    import random

    import pyarrow
    from pyarrow import parquet

    rng = random.Random(0)
    (folder / "imdb").mkdir(parents=True)
    for half, n in (("train", 60), ("test", 24)):
        texts = [" ".join(rng.choices(WORDS, k=rng.randint(3, 10))) for _ in range(n)]
        table = pyarrow.table({"text": texts, "label": [number % 2 for number in range(n)]})
        parquet.write_table(table, folder / "imdb" / f"{half}.parquet")
