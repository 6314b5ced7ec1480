"""`bias`: which text of a pair a language model finds more probable, over pairs that differ in one attribute."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float

from heedful.document import Pair
from heedful.errors import BadInput, Unsupported, in_short
from heedful.explanations import load_pandas
from heedful.models import Model, check_model
from heedful.models.attention_hook import still
from heedful.models.language import FillsIn, LanguageModel
from heedful.statistics.intervals import wilson
from heedful.statistics.quantity import Quantity, mean_over_texts


@final
@dataclass(frozen=True, eq=False)
class PairBias:
    """How much more probable the first text of every pair is than the second, in nats.

    Of a causal model: log p(first) − log p(second), where log p is the sum over all tokens given those before; what
    both texts begin with cancels. Of a masked language model: the same of the pseudo-log-likelihood, the sum of
    log p(token | all others) over the tokens that both texts share, each masked in turn.

    Reference: Nangia, Vania, Bhalerao & Bowman, *CrowS-Pairs*, EMNLP 2020, arXiv:2010.00133, for masked models; the
    share preferred is theirs.
    """

    firsts: tuple[str, ...]
    seconds: tuple[str, ...]
    differences: Float[np.ndarray, "pair"]
    measure: str
    model: str

    @property
    def mean(self) -> Quantity:
        """The mean difference, with its 95 % interval over pairs."""
        return mean_over_texts(self.differences)

    @property
    def share(self) -> Quantity:
        """The share of pairs whose first text is the more probable, with Wilson's 95 % interval."""
        n, count = len(self.firsts), int((self.differences > 0).sum())
        return Quantity(count / n, *wilson(count, n))

    def as_rows(self) -> list[dict[str, str | float]]:
        """One dictionary for every pair, the largest difference first."""
        order = np.argsort(-self.differences, kind="stable").tolist()
        columns = {"first": self.firsts, "second": self.seconds, "difference": self.differences.tolist()}
        return [{name: values[n] for name, values in columns.items()} for n in order]

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for every pair."""
        return load_pandas().DataFrame(self.as_rows())

    def as_dict(self) -> dict[str, object]:
        """Everything, ready for JSON."""
        plain: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self)}
        plain |= {"mean": self.mean.plain(), "share": self.share.plain()}
        return plain | {"differences": self.differences.tolist()}

    def save(self, path: str | Path) -> None:
        """Writes a file by its ending: .json, .png, .svg or .pdf."""
        # As `Attribution.save`: drawings are on the value.
        from heedful.render import write

        write(self, Path(path))

    def _repr_html_(self) -> str:
        # As on Explanation: the notebook protocol puts the drawing on the value.
        from heedful.render.pairs.pair_bias import bias_page

        return bias_page(self, "cell.html")

    def __repr__(self) -> str:
        return f"<{len(self.firsts)} pairs: difference {self.mean:.3g}, first preferred in {self.share:.2g}>"


def bias(model: Model, pairs: Sequence[Any]) -> PairBias:
    """Which text of each pair the model finds more probable; `pairs` are (first, second) that differ in one attribute.

    Takes causal language models and masked ones. The order of a pair says the direction, so put the same side of the
    attribute first in all pairs: positive differences are in its favour.
    """
    check_model(model)
    if not isinstance(model, LanguageModel | FillsIn):
        raise Unsupported(
            "The probability of a text needs a causal or masked language model, such as the bundled writer."
        )
    if isinstance(pairs, str | Pair) or not isinstance(pairs, Sequence) or not pairs:
        raise BadInput("Give a list of pairs of texts, such as [('The nurse said he', 'The nurse said she')].")
    texts = [(pair.first, pair.second) if isinstance(pair, Pair) else pair for pair in pairs]
    for pair in texts:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise BadInput(f"A pair is two texts; {in_short(pair)} was given.")
        if not all(text.strip() for text in pair):
            raise BadInput(f"A text of the pair {in_short(pair)} is empty; give two texts.")
        if pair[0] == pair[1]:
            raise BadInput(f"The texts of a pair must differ; {in_short(pair[0])} was given twice.")
    causal = isinstance(model, LanguageModel)
    with torch.no_grad():
        differences = np.array([(_causal if causal else _masked)(model, *pair) for pair in texts])
    firsts, seconds = zip(*texts, strict=True)
    measure = "log-probability" if causal else "pseudo-log-likelihood"
    return PairBias(firsts, seconds, differences, measure, model.fingerprint)


def _causal(model: Any, first: str, second: str) -> float:
    """log p(first) − log p(second), from the first token that differs on."""
    if model.n_sources([model.encode(first)]):
        raise Unsupported("An encoder-decoder gives no probability to a text alone; use a causal language model.")
    rows = [model.encode(text) for text in (first, second)]
    if any(row.truncated for row in rows):
        raise BadInput("A text is longer than the model's limit; shorten it.")
    _check_tokens_differ(rows[0].ids.tolist(), rows[1].ids.tolist(), first)
    n_shared = int(np.cumprod([a == b for a, b in zip(*(row.ids for row in rows), strict=False)]).sum())
    if not n_shared:
        raise BadInput(f"Both texts must begin with the same word; {in_short(first)} and its partner do not.")
    if n_shared == min(len(row.ids) for row in rows):
        raise BadInput(
            f"One text is the beginning of the other, so the shorter is always more probable: {in_short(first)}. "
            "Give texts that go on differently."
        )
    sums = []
    for row in rows:
        n = len(row.ids) - n_shared
        with still(model.network):
            logits = model.token_logits(model.embed([row]), [row], None, n + 1)[0, :n].double()
        ids = torch.from_numpy(row.ids[n_shared:]).to(logits.device)
        sums.append(float(logits.log_softmax(1).gather(1, ids[:, None]).sum()))
    return sums[0] - sums[1]


def _masked(model: Any, first: str, second: str) -> float:
    """The difference of log p(token | all others), summed over the tokens that both texts share."""
    (ids, copies), (others, their_copies) = model.masked_copies(first), model.masked_copies(second)
    _check_tokens_differ(ids, others, first)
    blocks = SequenceMatcher(None, ids, others, autojunk=False).get_matching_blocks()
    shared = [(block.a + n, block.b + n) for block in blocks for n in range(block.size)]
    both = [[copies[a] for a, _ in shared], [their_copies[b] for _, b in shared]]
    if not shared:
        raise BadInput(f"The texts of a pair must share a word; {in_short(first)} and its partner do not.")
    wanted = [ids[a] for a, _ in shared]
    logits = [torch.from_numpy(model.logits(documents)) for documents in both]
    sums = [float(own.log_softmax(1)[range(len(wanted)), wanted].sum()) for own in logits]
    return sums[0] - sums[1]


def _check_tokens_differ(first_ids: list[int], second_ids: list[int], first: str) -> None:
    if first_ids == second_ids:
        raise BadInput(
            f"The model reads {in_short(first)} and its partner as the same tokens, as where it does not know the "
            "words that differ; give others."
        )
