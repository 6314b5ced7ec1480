"""Arguments of a wrong type or size end in one sentence, never in an error of Python's own.

The calls run in a process of their own, without the type checks of the tests.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import heedful
from heedful.errors import HeedfulError

TEXT = "the film was good but the plot was dull"
TEXTS = [TEXT, "a very bright story", "not a good actor"]


def writer():
    """A tiny language model. Those of tests.families would bring the type checks with them."""
    words = {word: number for number, word in enumerate(["[unk]", *TEXT.split()])}
    split = Tokenizer(WordLevel(words, unk_token="[unk]"))
    split.pre_tokenizer = Whitespace()
    network = GPT2LMHeadModel(GPT2Config(vocab_size=len(words), n_positions=32, n_embd=8, n_layer=1, n_head=2))
    return heedful.wrap(network.eval(), PreTrainedTokenizerFast(tokenizer_object=split, unk_token="[unk]"))


CALLS = {
    "no method": lambda m: heedful.explain(m, TEXT, []),
    "methods of explain": lambda m: heedful.explain(m, TEXT, ["lime", "anchors"]),
    "methods of compare": lambda m: heedful.compare(m, TEXT, 3),
    "methods in an array": lambda m: heedful.compare(m, TEXT, np.array(3)),
    "a scale": lambda m: heedful.explain(m, TEXT, scale=np.array([1, 2])),
    "an empty scale": lambda m: heedful.explain(m, TEXT, scale=np.array([])),
    "a share near 0": lambda m: heedful.explain(m, TEXT, "anchors", presence=1e-300),
    "a path that is no text": lambda m: heedful.read(m, TEXT, "\ud800"),
    "a list of lists": lambda m: heedful.compare(m, TEXT, [[]]),
    "seconds": lambda m: heedful.explain(m, TEXT, seconds="x"),
    "seconds for a list": lambda m: heedful.explain(m, [TEXT], seconds="x"),
    "seconds of compare": lambda m: heedful.compare(m, TEXT, seconds="x"),
    "huge seconds": lambda m: heedful.explain(m, TEXT, seconds=10**400),
    "huge seconds for a list": lambda m: heedful.explain(m, [TEXT], seconds=10**400),
    "huge seconds of compare": lambda m: heedful.compare(m, TEXT, seconds=10**5000),
    "huge memory": lambda m: heedful.explain(m, TEXT, memory="9" * 400),
    "half": lambda m: heedful.explain(m, TEXT, half=np.array([1, 2])),
    "announce": lambda m: heedful.explain(m, TEXT, announce=3),
    "a wide kernel": lambda m: heedful.explain(m, TEXT, kernel_width=1e300),
    "a narrow kernel": lambda m: heedful.explain(m, TEXT, kernel_width=1e-300),
    "a wide exact kernel": lambda m: heedful.explain(m, TEXT, "lime-exact", kernel_width=1e300),
    "a head": lambda m: heedful.explain(m, TEXT, "attention-mean", head=np.array([0, 1])),
    "a head in an array": lambda m: heedful.explain(m, TEXT, "attention-mean", head=np.array([0])),
    "a unit": lambda m: heedful.explain(m, TEXT, unit=np.array(["word", "token"])),
    "samples": lambda m: heedful.explain(m, TEXT, n_samples=np.array([300, 400])),
    "a digit too many": lambda m: heedful.explain(m, TEXT, n_samples=10**5000),
    "a device": lambda _: heedful.load("paper", "meta"),
    "no device": lambda _: heedful.load("paper", []),
    "experiments": lambda _: heedful.reproduce(3),
    "the seed of reproduce": lambda _: heedful.reproduce(["figure-4"], quick=True, seed="x"),
    "tests of probe": lambda m: heedful.probe(m, TEXTS, 3),
    "a test of probe": lambda m: heedful.probe(m, TEXTS, [3]),
    "data of probe": lambda m: heedful.probe(m, 3),
    "n of probe": lambda m: heedful.probe(m, TEXTS, n="x"),
    "n_train of probe": lambda m: heedful.probe(m, TEXTS, n_train="x"),
    "train of probe": lambda m: heedful.probe(m, TEXTS, "deceived", train=3),
    "unit of probe": lambda m: heedful.probe(m, TEXTS, unit="letter"),
    "seed of probe": lambda m: heedful.probe(m, TEXTS, seed="x"),
    "split of probe": lambda m: heedful.probe(m, TEXTS, split="all"),
    "out of probe": lambda m: heedful.probe(m, TEXTS, out=3),
    "a setting of probe": lambda m: heedful.probe(m, TEXTS, "permuted", n_permutations=[1]),
    "a float of probe": lambda m: heedful.probe(m, TEXTS, "adversarial", epsilon=float("nan")),
    "a model of probe": lambda m: heedful.probe(3, TEXTS),
    "methods of trust": lambda m: heedful.trust(m, TEXTS, methods=3),
    "a method of trust": lambda m: heedful.trust(m, TEXTS, methods={"mine": 3}),
    "metrics": lambda m: heedful.trust(m, TEXTS, metrics=3),
    "a metric": lambda m: heedful.trust(m, TEXTS, metrics=[3]),
    "n": lambda m: heedful.trust(m, TEXTS, n="x"),
    "a negative seed": lambda m: heedful.trust(m, TEXTS, seed=-1),
    "a seed": lambda m: heedful.trust(m, TEXTS, seed="x"),
    "a twin": lambda m: heedful.trust(m, TEXTS, twin=3),
    "others": lambda m: heedful.trust(m, TEXTS, others=3),
    "another": lambda m: heedful.trust(m, TEXTS, others=[3]),
    "gold": lambda m: heedful.trust(m, TEXTS, gold=3),
    "progress": lambda m: heedful.trust(m, TEXTS, progress=3),
    "progress of a list": lambda m: heedful.explain(m, TEXTS, progress=3),
    "errors": lambda m: heedful.explain(m, TEXTS, errors="rais"),
    "a list of targets": lambda m: heedful.explain(m, TEXTS, target=[1, [], 0], errors="raise"),
    "a dictionary of texts": lambda m: heedful.trust(m, {"text": TEXTS}),
    "a column": lambda m: heedful.explain(m, TEXTS, text="text"),
    "labels": lambda m: heedful.explain(m, TEXTS, label=[1]),
    "a split": lambda m: heedful.trust(m, TEXTS, split="x"),
    "a folder": lambda m: heedful.trust(m, TEXTS, out=3),
    "a folder for two": lambda m: heedful.trust([m, m], TEXTS, out=3),
    "probes": lambda m: heedful.probe(m, TEXTS, tests=3),
    "a probe": lambda m: heedful.probe(m, TEXTS, tests=[3]),
    "a mapping of probes": lambda m: heedful.probe(m, TEXTS, tests={}),
    "texts of probe": lambda m: heedful.probe(m, 3),
    "texts to train on": lambda m: heedful.probe(m, TEXTS, train=3),
    "a number to train on": lambda m: heedful.probe(m, TEXTS, n_train="x"),
    "a setting of a probe": lambda m: heedful.probe(m, TEXTS, n_permutations=None),
    "models of probe": lambda m: heedful.probe([m, m], TEXTS),
    "a folder of probe": lambda m: heedful.probe(m, TEXTS, "permuted", out=3),
    "progress of probe": lambda m: heedful.probe(m, TEXTS, "permuted", progress=3),
    "a continuation": lambda _: heedful.probe(heedful.continuation(writer(), 3), TEXTS),
    "the name of a model": lambda _: heedful.explain("paper", TEXT),
    "a network": lambda m: heedful.compare(m.network, TEXT),
    "networks": lambda m: heedful.compare([m, m.network], TEXT),
    "a network of trust": lambda m: heedful.trust(m.network, TEXTS),
    "a network of heads": lambda m: heedful.heads(m.network, TEXTS),
    "a network of generate": lambda m: heedful.generate(m.network, TEXT),
    "a model that does not write": lambda m: heedful.generate(m, TEXT),
    "a prompt": lambda _: heedful.generate(writer(), 3),
    "a pair as prompt": lambda _: heedful.generate(writer(), heedful.Pair("a", "b")),
    "a context": lambda _: heedful.generate(writer(), TEXT, context=3),
    "a passage": lambda _: heedful.generate(writer(), TEXT, context=[3]),
    "chat": lambda _: heedful.generate(writer(), TEXT, chat="yes"),
    "a strategy": lambda _: heedful.generate(writer(), TEXT, ["beam"]),
    "new tokens": lambda _: heedful.generate(writer(), TEXT, max_new="4"),
    "a wide beam": lambda _: heedful.generate(writer(), TEXT, "beam", width=10**400),
    "a temperature": lambda _: heedful.generate(writer(), TEXT, "sampling", temperature=[1]),
    "the seed of generate": lambda _: heedful.generate(writer(), TEXT, "sampling", seed=1.5),
    "a model of attribute": lambda _: heedful.attribute(None, TEXT, "dull"),
    "a prompt to attribute": lambda _: heedful.attribute(writer(), 3, "dull"),
    "a number as output": lambda _: heedful.attribute(writer(), TEXT, 3),
    "tokens that are no numbers": lambda _: heedful.attribute(writer(), TEXT, ["dull"]),
    "half a token": lambda _: heedful.attribute(writer(), TEXT, [1.5]),
    "an explanation as output": lambda m: heedful.attribute(writer(), TEXT, heedful.explain(m, TEXT, "random")),
    "methods of attribute": lambda _: heedful.attribute(writer(), TEXT, "dull", ["lime"]),
    "no method of attribute": lambda _: heedful.attribute(writer(), TEXT, "dull", 3),
    "parts": lambda _: heedful.attribute(writer(), TEXT, "dull", of="letters"),
    "a number as parts": lambda _: heedful.attribute(writer(), TEXT, "dull", of=3),
    "a span of one number": lambda _: heedful.attribute(writer(), TEXT, "dull", of=(1,)),
    "a span of words": lambda _: heedful.attribute(writer(), TEXT, "dull", of=("a", "b")),
    "another output": lambda _: heedful.attribute(writer(), TEXT, "dull", against=3),
    "a measure": lambda _: heedful.attribute(writer(), TEXT, "dull", measure="certainty"),
    "measures": lambda _: heedful.attribute(writer(), TEXT, "dull", measure=["logit"]),
    "sources": lambda _: heedful.attribute(writer(), TEXT, "dull", unit="letter"),
    "a number of sources": lambda _: heedful.attribute(writer(), TEXT, "dull", unit=3),
    "earlier output": lambda _: heedful.attribute(writer(), TEXT, "dull", earlier="gone"),
    "several choices of earlier output": lambda _: heedful.attribute(writer(), TEXT, "dull", earlier=["fixed"]),
    "chat of attribute": lambda _: heedful.attribute(writer(), TEXT, "dull", chat="yes"),
    "a context of attribute": lambda _: heedful.attribute(writer(), TEXT, "dull", context=3),
    "new tokens of attribute": lambda _: heedful.attribute(writer(), TEXT, max_new="4"),
    "memory of attribute": lambda _: heedful.attribute(writer(), TEXT, "dull", memory=[1]),
    "seconds of attribute": lambda _: heedful.attribute(writer(), TEXT, "dull", seconds="one"),
    "progress of attribute": lambda _: heedful.attribute(writer(), TEXT, "dull", progress=3),
    "a setting of attribute": lambda _: heedful.attribute(writer(), TEXT, "dull", n_samples="many"),
}


def outcomes():
    """What each call ends in: whether its error is heedful's own, and the message."""
    model, ends = heedful.load("paper"), {}
    for name, call in CALLS.items():
        try:
            ends[name] = (False, repr(call(model)))
        except Exception as error:
            ends[name] = (isinstance(error, HeedfulError), f"{type(error).__name__}: {error}")
    return ends


@pytest.fixture(scope="module")
def ends():
    script = f"import json; from {__name__} import outcomes; print(json.dumps(outcomes()))"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_ends_in_one_sentence(name, ends):
    ours, message = ends[name]
    assert ours, message
    assert len(message.splitlines()) == 1
    assert message.endswith(".")
    assert len(message) < 1000
