"""Inseq's gradient attribution of generated text, as a table output × source.

`python -m benchmarks.generation.inseq_side MODEL` answers every line that it reads with a line of JSON: the CPU
seconds of one attribution, and the table. So it may run in an environment of its own, in turn with ours.
"""

import json
import sys
from time import process_time
from typing import Any

import inseq
import numpy as np
import torch

from benchmarks.generation.setting import Setting, word_setting


def load(setting: Setting) -> Any:
    """Inseq's model for gradient times input. Its weights ask for no gradients, which is faster than its default."""
    setting.network.requires_grad_(False)
    return inseq.load_model(setting.network, "input_x_gradient", tokenizer=setting.tokenizer, device="cpu")


def gradient_x_input(model: Any, setting: Setting) -> np.ndarray:
    """Gradient times input of every output token's log-probability: one forward and backward each."""
    text = setting.tokenizer.decode(setting.ids + setting.output, skip_special_tokens=True)
    if setting.tokenizer(text)["input_ids"] != setting.ids + setting.output:
        raise ValueError("Inseq reads text, and this output is other tokens when it is read again")
    result = model.attribute(setting.prompt, text, attributed_fn="probability", logprob=True, show_progress=False)
    scores = result.sequence_attributions[0].target_attributions.sum(-1)[: len(setting.ids)]
    return setting.by_source(scores.T.double().numpy())


def main() -> None:
    torch.set_num_threads(1)
    setting = word_setting(sys.argv[1])
    model = load(setting)
    for _ in sys.stdin:
        start = process_time()
        table = gradient_x_input(model, setting)
        sys.stdout.write(json.dumps({"seconds": process_time() - start, "table": table.tolist()}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
