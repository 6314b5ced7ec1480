"""Writes one token after another, each drawn from the law of a strategy."""

import numpy as np
import torch

from heedful.document import Document
from heedful.generation.step import Ended, Step, demanded_token, next_log_probabilities, record_step
from heedful.generation.strategies import Strategy, draw_token
from heedful.models.language import LanguageModel
from heedful.progress import Progress


def write_tokens(
    model: LanguageModel,
    document: Document,
    strategy: Strategy,
    limit: int,
    rng: np.random.Generator,
    watch: Progress,
) -> tuple[tuple[Step, ...], Ended]:
    """The tokens after a document, until an end token or the limit; the cache keeps what was read."""
    steps: list[Step] = []
    prefix = model.read(document)
    for n_written in range(limit):
        log_p = next_log_probabilities(prefix, n_written)[0]
        demanded = demanded_token(model, n_written, limit)
        law = strategy.law(log_p) if demanded is None else (np.arange(len(log_p)) == demanded).astype(np.float64)
        chosen = draw_token(law, rng)
        steps.append(record_step(model.classes, log_p, chosen, law > 0, law, demanded is not None))
        watch(len(steps), limit)
        if chosen in model.end_ids:
            return tuple(steps), "end of text" if steps[-1].ends(model.end_ids) else "length"
        if len(steps) < limit:
            prefix = model.go_on(prefix, torch.tensor([chosen], device=prefix.logits.device))
    return tuple(steps), "length"
