"""Hugging Face models that read a text or a pair and classify it, such as BERT, and decoders with such a head."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedful.document import Document, Pair
from heedful.errors import BadInput, Unsupported
from heedful.models.attention_hook import still
from heedful.models.black_box import are_probabilities
from heedful.models.fingerprint import fingerprint_of
from heedful.models.hf.module import CustomModule, returned_by_graph
from heedful.models.hf.pretrained import returned_by
from heedful.models.hf.reader import HfReader
from heedful.models.hf.text import read_text
from heedful.models.readout import READ_FROM, Reading, counted_forwards, reading_of, readout_rows
from heedful.models.recording import record
from heedful.target import Returns

_CLASSIFIERS = ("ForSequenceClassification", "ForNextSentencePrediction", "ForMultipleChoice")
_PAIRS = {
    "ForNextSentencePrediction": "two texts: give heedful.Pair(text, next text)",
    "ForMultipleChoice": "a prompt and a choice: give heedful.Pair(prompt, choice)",
}
"""What the models of pairs read, and how it is given."""


@final
class HfEncoder(HfReader):
    """A sequence classifier; the logits are read from [CLS], from the mean of all tokens, or from the last token.

    A next-sentence head has the classes "next" and "random". A multiple-choice head has one output, the score of the
    choice in `Pair(prompt, choice)`: the probability of a choice is a softmax over the scores of all, which are read
    apart, so a word of the prompt has its own score for each choice.
    A bare encoder without a head has no classes of its own: its outputs are the coordinates of the vector at [CLS].
    The network may also be a torch module around an encoder.
    """

    network: PreTrainedModel | CustomModule

    def __init__(
        self,
        network: PreTrainedModel | CustomModule,
        tokenizer: PreTrainedTokenizerBase,
        returns: Returns | None = None,
        classes: Sequence[str] | None = None,
    ) -> None:
        self.take(network, tokenizer)
        name = type(network).__name__
        self._bare = isinstance(network, PreTrainedModel) and not name.endswith(_CLASSIFIERS)
        self.n_choices = int(name.endswith("ForMultipleChoice"))
        self._reading: Reading = "first"
        self._needs = ""
        with counted_forwards(network) as passes:
            names, returned = self._outputs()
            self._probe()
        self.probe_forwards = len(passes)
        self.reads = "" if "attention" in self.withheld else READ_FROM[self._reading]
        if isinstance(network, CustomModule):
            self.family = f"{type(network.module).__name__} around {type(network.encoder).__name__}"
            # Where padding changes the outputs, only texts of equal length share a batch.
            self.family += "" if self.ragged else " (padding changes its outputs: batches of equal lengths)"
        self.returns = returns or returned
        self.classes = names if classes is None else tuple(classes)
        if len(self.classes) != len(names):
            raise BadInput(f"The model returns {len(names)} outputs, but {len(self.classes)} classes were named.")
        self._needs = next((needs for ending, needs in _PAIRS.items() if name.endswith(ending)), "")

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights and of the names of the classes."""
        return fingerprint_of(self.network, self.classes)

    def _outputs(self) -> tuple[tuple[str, ...], Returns]:
        """The names of the outputs and what they are, by the configuration; those of a module are computed."""
        network = self.network
        config: Any = network.config
        if self._bare:
            return tuple(f"coordinate {n}" for n in range(config.hidden_size)), "scores"
        if self.n_choices:
            return ("the choice",), "scores"
        if type(network).__name__.endswith("ForNextSentencePrediction"):
            return ("next", "random"), "logits"
        if isinstance(network, PreTrainedModel):
            return tuple(str(config.id2label[number]) for number in sorted(config.id2label)), returned_by(network)
        short, long = self.encode("a b"), self.encode("a b c d e f")
        with torch.enable_grad(), still(network):
            alone = [self.forward(self.embed([one]).detach().requires_grad_(), [one]) for one in (short, long)]
            together = self.forward(self.embed([short, long]), [short, long]).detach()
        rows = torch.cat(alone).detach()
        # Relative to the difference of two texts: a large bias or a saturated sigmoid would hide the effect of padding.
        self.ragged = bool((together - rows).abs().max() <= 1e-3 * (rows[0] - rows[1]).abs().max())
        n_outputs = rows.shape[1]
        returned = "probabilities" if are_probabilities(rows.double().cpu().numpy()) else returned_by_graph(alone[0])
        names = tuple(f"class {n}" for n in range(n_outputs)) if n_outputs > 1 else ("the single output",)
        return names, returned

    def _probe(self) -> None:
        """Determines which positions the logits are read from; withholds attention if it cannot be recorded."""
        try:
            document = self.encode("a b c d e f")
            causal = self._bare and self._is_causal(document)
            self._reading = "first" if causal else reading_of(self, document)
            if isinstance(self.network, CustomModule):
                with torch.no_grad(), still(self.network):
                    run = partial(self.forward, self.embed([document]), [document])
                    self.network.check_reading(run, self._reading == "all")
        except Unsupported as error:
            self.withheld = dict.fromkeys(("attention", "layers"), str(error))
            return
        if causal:
            raise Unsupported(
                f"{type(self.network).__name__} has no task head; load it as a classifier or language model."
            )

    def encode(self, text: object) -> Document:
        """The text as this model reads it; a model of pairs is given no single text, but for its own probes."""
        if self._needs and not isinstance(text, Pair):
            raise BadInput(f"This model reads {self._needs}, or --second on the command line.")
        return read_text(self.tokenizer, text, self.room)

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The logits from those vectors."""
        if hidden is not None and not self.ragged:
            raise Unsupported("Padding changes this module's outputs, so tokens cannot be hidden; use another absence.")
        output = self.run(embeddings, documents, hidden)
        if not self._bare:
            return output.logits
        return output.last_hidden_state[:, 0]

    def _is_causal(self, document: Document) -> bool:
        call = record(self, [document]).calls[0]
        return not call.rows(torch.zeros(1, dtype=torch.long, device=call.q.device))[0, 0, 0, 1:].any()

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position of the last layer in the logits."""
        return readout_rows(self._reading, [len(d.ids) for d in documents]).to(next(self.network.parameters()).device)
