"""What transformers.generate writes, with every setting of generation but the plain law switched off."""

import torch

PLAIN = {
    "do_sample": False,
    "no_repeat_ngram_size": 0,
    "min_length": 0,
    "repetition_penalty": 1.0,
    "length_penalty": 1.0,
    "early_stopping": False,
    "bad_words_ids": None,
}


def written_by_transformers(model, prompt, max_new, **settings):
    """The tokens after the prompt, without the padding behind the end."""
    document = model.encode(prompt)
    ids = torch.from_numpy(document.ids)[None]
    source = ids if document.segments is None else ids[:, torch.from_numpy(document.segments) == 0]
    start = ids.shape[1] if document.segments is None else 1
    settings = {**PLAIN, "eos_token_id": sorted(model.end_ids), **settings}
    with torch.no_grad():
        rows = model.network.generate(
            source, attention_mask=torch.ones_like(source), max_new_tokens=max_new, pad_token_id=0, **settings
        )
    written = rows[0, start:].tolist()
    ends = [place for place, token in enumerate(written) if token in settings["eos_token_id"]]
    return written[: ends[0] + 1] if ends else written
