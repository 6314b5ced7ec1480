"""What perturbation costs around its forward passes, on a 4-layer, 256-wide BERT and a text of 100 words.

    make bench-perturbation

CPU time of one thread; every method in turn with the same number of bare forward passes of the same texts, batched as
well as is known, so that both sides meet the same machine. Others: the official `lime`, `shap` and `captum`.
"""

import argparse
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from time import process_time

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

import heedful
from heedful.models import Model

N_WORDS, N = 100, 1000
AT_ONCE = 10
"""What this model is fastest with on a CPU."""


def bert_of(
    words: Sequence[str], room: int = 512
) -> tuple[Model, BertForSequenceClassification, PreTrainedTokenizerFast]:
    """A BERT of 4 layers, 256 wide, that knows these words, reads so many tokens, and that nobody trained."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    raw = Tokenizer(models.WordLevel({w: n for n, w in enumerate([*special, *words])}, unk_token="[UNK]"))
    raw.normalizer, raw.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    raw.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    names = {f"{name.strip('[]').lower()}_token": name for name in special}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, model_max_length=room, **names)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        initializer_range=0.1,
    )
    network = BertForSequenceClassification(config).eval()
    return heedful.wrap(network, tokenizer), network, tokenizer


def build() -> tuple[Model, BertForSequenceClassification, PreTrainedTokenizerFast, str]:
    """The model of the issue trackers' complaints and a text of distinct words."""
    words = [f"w{n}" for n in range(2000)]
    text = " ".join(np.random.default_rng(0).choice(words, size=N_WORDS, replace=False))
    return *bert_of(words), text


def bare(network: BertForSequenceClassification, ids: torch.Tensor, n: int) -> None:
    """n forward passes of texts of this length, batched, and nothing else."""
    with torch.inference_mode():
        for start in range(0, n, AT_ONCE):
            network(ids.expand(min(AT_ONCE, n - start), -1).contiguous())


def official_lime(predict: Callable[[list[str]], np.ndarray], text: str, n: int) -> None:
    from lime.lime_text import LimeTextExplainer

    LimeTextExplainer(random_state=0).explain_instance(text, predict, num_features=N_WORDS, num_samples=n)


def kernel_shap(predict: Callable[[list[str]], np.ndarray], text: str, n: int) -> None:
    import shap

    words = np.array(text.split())

    def f(masks: np.ndarray) -> np.ndarray:
        return predict([" ".join(np.where(row > 0.5, words, "[MASK]")) for row in masks])[:, 1]

    shap.KernelExplainer(f, np.zeros((1, N_WORDS)), silent=True).shap_values(np.ones(N_WORDS), nsamples=n, silent=True)


def captum_kernel_shap(network: BertForSequenceClassification, ids: torch.Tensor, n: int) -> None:
    from captum.attr import KernelShap

    features = torch.arange(ids.shape[1])[None]
    KernelShap(lambda x: network(x).logits).attribute(
        ids, baselines=torch.full_like(ids, 4), target=1, n_samples=n, feature_mask=features, perturbations_per_eval=1
    )


def captum_lime(network: BertForSequenceClassification, ids: torch.Tensor, n: int) -> None:
    from captum.attr import Lime

    features = torch.arange(ids.shape[1])[None]
    Lime(lambda x: network(x).logits).attribute(
        ids,
        baselines=torch.full_like(ids, 4),
        target=1,
        n_samples=n,
        feature_mask=features,
        perturbations_per_eval=AT_ONCE,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory-of", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--samples", type=int, default=N)
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    model, network, tokenizer, text = build()
    if given.memory_of is not None:
        heedful.explain(model, text, "lime", target=1, n_samples=given.memory_of, design="paired")
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    n = given.samples

    def predict(texts: list[str]) -> np.ndarray:
        rows = []
        for start in range(0, len(texts), AT_ONCE):
            batch = tokenizer(list(texts[start : start + AT_ONCE]), return_tensors="pt", padding=True)
            with torch.inference_mode():
                rows.append(torch.softmax(network(**batch).logits, dim=1).numpy())
        return np.concatenate(rows)

    def ours(method: str, **settings: object) -> Callable[[], object]:
        return lambda: heedful.explain(model, text, method, target=1, n_samples=n, **settings)

    sides: dict[str, Callable[[], object]] = {
        "heedful lime, replace": ours("lime"),
        "heedful lime, delete": ours("lime", absence="delete"),
        "heedful shapley-sampled, replace": ours("shapley-sampled"),
        "heedful shapley-sampled, kernel form": ours("shapley-sampled", design="paired"),
        f"lime {version('lime')}, deletes": lambda: official_lime(predict, text, n),
        f"shap {version('shap')} KernelExplainer": lambda: kernel_shap(predict, text, n),
        f"captum {version('captum')} Lime, {AT_ONCE} at once": lambda: captum_lime(network, ids, n),
        f"captum {version('captum')} KernelShap, its defaults": lambda: captum_kernel_shap(network, ids, n),
    }
    heedful.explain(model, text, "lime", target=1, n_samples=40)
    bare(network, ids, AT_ONCE)
    print(f"{n} masks of {N_WORDS} words; bare: {n} forwards, {AT_ONCE} at once, of the whole text\n")
    print(f"{'':48}{'CPU s':>8}{'bare':>8}{'ratio':>8}")
    for name, side in sides.items():
        start = process_time()
        bare(network, ids, n // 2)
        middle = process_time()
        side()
        end = process_time()
        bare(network, ids, n - n // 2)
        plain = process_time() - end + middle - start
        print(f"{name:48}{end - middle:8.2f}{plain:8.2f}{(end - middle) / plain:8.2f}", flush=True)
    print("\npeak memory of the process, LIME:")
    for samples in (500, 5000):
        command = [sys.executable, "-m", "benchmarks.perturbation", "--memory-of", str(samples)]
        kilobytes = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        print(f"{samples:8,} masks: {kilobytes / 1e3:.0f} MB")


if __name__ == "__main__":
    main()
