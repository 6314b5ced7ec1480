"""What attention and gradient methods cost on a transformer: time against the passes they need, memory on long texts.

    python -m benchmarks.families            # both tables
    python -m benchmarks.families --long 4096

Everything is measured in one run on models built from a config. A method's needs are plain passes of the same network
on the same tokens: a forward, or a forward and the gradient at the embeddings with the weights frozen.
"""

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import torch
from captum.attr import InputXGradient, IntegratedGradients, Saliency
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

import heedful
from heedful.explainers import configure
from heedful.explainers.explain import run_explainer
from heedful.models.hf.encoder import HfEncoder
from heedful.models.question import ask

N_WORDS = 500
BASE = {"num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}


def model_of(sizes: dict[str, int], room: int) -> HfEncoder:
    """BERT of that size with weights nobody trained, and a tokenizer that splits at spaces."""
    torch.manual_seed(0)
    words = {
        word: n for n, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(N_WORDS))])
    }
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    config = BertConfig(vocab_size=len(words), max_position_embeddings=room, **sizes)
    network = BertForSequenceClassification(config).eval()
    model = heedful.wrap(network, PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special))
    assert isinstance(model, HfEncoder)
    return model


def text_of(n_tokens: int) -> str:
    return " ".join(str(n % N_WORDS) for n in range(n_tokens - 2))


def seconds_in_turn(run: Callable[[], object], plain: Callable[[], object], times: int) -> tuple[float, float]:
    """The medians, in CPU seconds of one thread, of two things done in turn."""
    spent: tuple[list[float], list[float]] = ([], [])
    for turn in range(times + 1):
        for which, work in enumerate((run, plain)):
            start = process_time()
            work()
            if turn:
                spent[which].append(process_time() - start)
    return median(spent[0]), median(spent[1])


def cost_table(n_tokens: int) -> None:
    """Every method beside the passes it needs, and captum's of the same name."""
    torch.set_num_threads(1)
    model = model_of(BASE, 512)
    text = text_of(n_tokens)
    document = model.encode(text)
    ids = torch.from_numpy(document.ids)[None]
    for weight in model.network.parameters():
        weight.requires_grad_(False)

    def forward() -> None:
        with torch.no_grad():
            model.network(input_ids=ids)

    def both() -> None:
        e = model.embed([document]).detach().requires_grad_()
        torch.autograd.grad(model.network(inputs_embeds=e).logits[0, 0], e)

    inside = torch.nn.Module()
    inside.forward = lambda e: model.network(inputs_embeds=e).logits
    e = model.embed([document]).detach()
    gradients, times_input = IntegratedGradients(inside), InputXGradient(inside)
    four = ["gradient-mean", "gradient-l1", "gradient-l2", "gradient-x-input"]
    runs: list[tuple[str, str, int, Callable[[], object]]] = [
        (name, "forward", 1, lambda name=name: heedful.explain(model, text, name, target=0))
        for name in ("attention-mean", "attention-last", "rollout", "value-norms")
    ]
    runs += [
        (name, "both", 1, lambda name=name: heedful.explain(model, text, name, target=0))
        for name in ("gradient-l2", "gradient-x-input", "gradient-attention")
    ]
    runs += [
        ("all four gradients together", "both", 1, lambda: together(model, text, four)),
        ("integrated-gradients, 10 steps", "both", 12, lambda: integrated(model, text)),
        ("captum Saliency", "both", 1, lambda: Saliency(inside).attribute(e.clone().requires_grad_(), target=0)),
        ("captum InputXGradient", "both", 1, lambda: times_input.attribute(e.clone().requires_grad_(), target=0)),
        ("captum IntegratedGradients, 10", "both", 10, lambda: gradients.attribute(e, target=0, n_steps=10)),
    ]
    print(f"{BASE['num_hidden_layers']} layers, {BASE['hidden_size']} wide, {n_tokens} tokens; medians of CPU time")
    needs: dict[str, Callable[[], object]] = {"forward": forward, "both": both}
    for name, need, times, run in runs:
        # In turn with what it needs: the machine's load changes from minute to minute.
        spent, plain = seconds_in_turn(run, needs[need], 3 if times > 1 else 7)
        what = "one forward" if need == "forward" else f"{times} forward and backward"
        print(f"  {name:34}{1000 * spent:9.1f} ms = {spent / plain / times:.2f} × {what} ({1000 * plain:.1f} ms)")


def together(model: HfEncoder, text: str, names: list[str]) -> None:
    """Several methods on one question, as `compare` runs them, without its maps."""
    question = ask(model, [text], 0)
    for name in names:
        run_explainer(configure(name, {}), question)


def integrated(model: HfEncoder, text: str) -> None:
    heedful.explain(model, text, "integrated-gradients", target=0, n_steps=10)


def long_run(what: str, n_tokens: int) -> None:
    """One method on one long text: seconds, and memory at its peak beyond what the loaded model holds."""
    model = model_of(BASE, n_tokens)
    short, text = text_of(16), text_of(n_tokens)
    if what != "eager":
        heedful.explain(model, short, what, target=0)
    before = _now()
    start = perf_counter()
    if what == "eager":
        model.network.set_attn_implementation("eager")
        with torch.no_grad():
            model.network(input_ids=torch.from_numpy(model.encode(text).ids)[None], output_attentions=True)
    else:
        heedful.explain(model, text, what, target=0)
    spent = perf_counter() - start
    print(f"  {what:34}{spent:9.1f} s, {(_peak() - before) / 1e9:.2f} GB beyond the model")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def _now() -> float:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--long", type=int, default=4096)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        long_run(asked.one, asked.long)
        return
    cost_table(asked.tokens)
    maps = BASE["num_hidden_layers"] * BASE["num_attention_heads"] * asked.long**2 * 4 / 1e9
    print(f"{asked.long:,} tokens × 12 layers × 12 heads, 768 wide; all maps at once would be {maps:.1f} GB")
    for what in ("rollout", "gradient-attention", "eager"):
        # In a process of its own: a peak cannot be taken back.
        command = [sys.executable, "-m", "benchmarks.families", "--one", what, "--long", str(asked.long)]
        print(subprocess.run(command, capture_output=True, text=True).stdout.rstrip() or f"  {what:34}  out of memory")


if __name__ == "__main__":
    main()
