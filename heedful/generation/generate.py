"""`generate`: the text that a language model writes after a prompt."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType

import torch

from heedful.document import Document
from heedful.document.note import Note
from heedful.errors import BadInput, unknown_name
from heedful.family import build, check_count, check_seed, setting_types
from heedful.generation.beam import Beam, search_beams
from heedful.generation.generation import Generation
from heedful.generation.prompt import read_prompt
from heedful.generation.step import Step
from heedful.generation.strategies import Greedy, Nucleus, Sampling, Strategy, TopK
from heedful.generation.writing import write_tokens
from heedful.models import Model
from heedful.models.attention_hook import still
from heedful.models.language import LanguageModel, check_writes
from heedful.perturb.masks import generator
from heedful.progress import Progress, progress_of, show_progress

STRATEGIES: Mapping[str, type[Strategy] | type[Beam]] = MappingProxyType(
    {kind.name: kind for kind in (Greedy, Sampling, TopK, Nucleus, Beam)}
)
_LONGEST = 100_000


def generate(
    model: Model,
    prompt: str,
    strategy: str = "greedy",
    *,
    context: str | Sequence[str] | None = None,
    chat: bool | None = None,
    max_new: int = 40,
    seed: int = 0,
    progress: Progress | bool | None = show_progress,
    **settings: object,
) -> Generation:
    """Writes the text that a language model continues a prompt with, until an end token or `max_new` tokens.

    `strategy` is "greedy" (the most likely token), "sampling", "top-k" (setting `k`, 50 by default), "nucleus" (`p`,
    0.9) or "beam" (`width`, 4). The three that draw tokens have a `temperature`, 1 by default, and depend on `seed` and
    the prompt alone. `context` is a list of passages, or a text with blank lines between them, that stands before the
    prompt. `chat` says whether both are a user's message in the chat template of the tokenizer; by default they are if
    there is one. `progress` is called with the tokens written and the limit.

    The law is the model's own. Of the settings of generation that come with a Hugging Face model, only the tokens that
    begin and end every output are obeyed; penalties, forbidden words and smallest lengths are not.
    """
    writer, rule = check_writes(model), configured(strategy, settings)
    check_length(max_new)
    check_seed(seed)
    document = read_prompt(writer, prompt, context, chat)
    with progress_of(progress, "tokens") as watch:
        return _written(writer, document, rule, int(max_new), int(seed), watch)


def _written(
    writer: LanguageModel, document: Document, rule: Strategy | Beam, max_new: int, seed: int, watch: Progress
) -> Generation:
    """The text after a document that was read."""
    limit, tree = min(max_new, room_left(writer, document)), None
    with torch.no_grad(), still(writer.network):
        if isinstance(rule, Beam):
            steps, tree, ended = search_beams(writer, document, rule, limit, watch)
        else:
            steps, ended = write_tokens(writer, document, rule, limit, generator(seed, document), watch)
    own = {} if isinstance(rule, Greedy | Beam) else {"seed": seed}
    return Generation(
        document=document,
        text=added_text(writer, document, [step.id for step in steps]),
        steps=steps,
        tree=tree,
        ended=ended,
        strategy=rule.name,
        settings={**asdict(rule), "max_new": max_new, **own},
        model=writer.fingerprint,
        notes=(*document.notes, *_notes(writer, steps, max_new if ended == "length" else 0)),
    )


def _notes(model: LanguageModel, steps: Sequence[Step], wanted: int) -> Iterator[Note]:
    """What a reader should know of the text that was written."""
    if len(steps) < wanted:
        sentence = f"Only {len(steps):,} of {wanted:,} tokens were written: the model reads and writes at most "
        yield Note(f"{sentence}{model.room:,} tokens.", "limited")
    if steps[0].id in model.end_ids:
        yield Note("The model ended the text at once, so nothing was written.", "uninformative")
    if not model.caches:
        yield Note("The model keeps no cache, so it read the whole text again for every token.")


def check_length(max_new: object) -> None:
    """Refuses a length that is no whole number, or too large."""
    check_count("max_new", max_new, 1, _LONGEST)


def configured(strategy: str, settings: Mapping[str, object]) -> Strategy | Beam:
    """The strategy with its settings; one that belongs to another strategy is refused."""
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise unknown_name("strategy", strategy, STRATEGIES)
    types = {name: setting_types(kind) for name, kind in STRATEGIES.items()}
    for setting in settings:
        owners = [name for name, own in types.items() if setting in own]
        if not owners:
            raise unknown_name("setting", setting, set().union(*types.values()))
        if strategy not in owners:
            raise BadInput(f"{strategy} has no setting {setting!r}, which belongs to {' and '.join(owners)}.")
    return build(STRATEGIES[strategy], strategy, settings)


def room_left(model: LanguageModel, document: Document) -> int:
    """How many tokens can be written before prompt and text fill the model; at least 1, or an error."""
    if model.room is None:
        return _LONGEST
    n_read = len(document.ids) if document.segments is None else int((document.segments == 1).sum())
    if n_read >= model.room:
        raise BadInput(
            f"The prompt has {n_read:,} tokens and the model reads and writes at most {model.room:,}; "
            "shorten the prompt or its context."
        )
    return model.room - n_read


def added_text(model: LanguageModel, document: Document, ids: Sequence[int]) -> str:
    """What the tokens add to the text of the document."""
    added = model.continued(document, ids).text[len(document.text) :]
    return added if document.segments is None else added.removeprefix("\n")
