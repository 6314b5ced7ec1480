"""A network from its embeddings or pixels to its logits, by transformers alone, for captum and autograd."""

import numpy as np
import torch
from torch import nn

import heedful
from tests.families import build, texts_for

COMPARED = ["bert", "gpt2", "llama", "t5", "bart", "marian", "vit"]
CLOSE = 1e-5


class Plain(nn.Module):
    """A network from its embeddings, or from its pixels, to its logits; a document's two towers stand side by side."""

    def __init__(self, family, text):
        super().__init__()
        self.model = build(family)
        self.document, self.network = self.model.encode(text), self.model.network

    @property
    def start(self):
        if self.document.picture is not None:
            return torch.from_numpy(self.document.picture.pixels)[None].double().requires_grad_()
        return self.looked_up(self.document.ids).requires_grad_()

    def looked_up(self, ids):
        return self.network.get_input_embeddings()(torch.from_numpy(ids)[None]).detach()

    def forward(self, x):
        if self.document.picture is not None:
            return self.network(pixel_values=x).logits
        if not self.network.config.is_encoder_decoder:
            pair = self.document.segments is not None
            kinds = torch.from_numpy(self.document.segments).expand(len(x), -1) if pair else None
            logits = self.network(inputs_embeds=x, **({"token_type_ids": kinds} if pair else {})).logits
            return logits[:, -1] if logits.dim() == 3 else logits
        second = torch.from_numpy(self.document.segments) == 1
        # Marian's encoder multiplies what it looks up, and only that, by √d; its decoder both.
        scale = getattr(self.network.get_encoder(), "embed_scale", 1.0)
        inputs = {"inputs_embeds": scale * x[:, ~second], "decoder_inputs_embeds": x[:, second], "use_cache": False}
        return self.network(**inputs).logits[:, -1]

    def tokens(self, numbers):
        """One number a token: coordinates summed, and of an image the pixels of each patch, none for [CLS]."""
        if self.document.picture is None:
            return numbers[0].sum(dim=-1).detach().numpy()
        patches = numbers[0].detach().numpy().reshape(3, 4, 4, 4, 4).sum(axis=(0, 2, 4)).ravel()
        return np.concatenate([np.zeros(len(self.document.ids) - len(patches)), patches])

    def explain(self, text, method, **settings):
        unit = "token" if self.document.picture is None else "patch"
        return heedful.explain(self.model, text, method, unit=unit, **settings)


def compared(family, number=0):
    text = texts_for(family)[number]
    plain = Plain(family, text)
    return text, plain, plain.start, int(plain(plain.start)[0].argmax())
