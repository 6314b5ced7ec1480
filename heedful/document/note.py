"""Notes: sentences that a reader should not miss, each with a kind that programs can test."""

from typing import Literal, final

NoteKind = Literal[
    "stopped",
    "reached",
    "budget",
    "limited",
    "truncated",
    "unknown-words",
    "unmatched-tokens",
    "not-deterministic",
    "not-probabilities",
    "changed-text",
    "half-precision",
    "inexact",
    "uninformative",
    "few-samples",
    "result",
    "read-in",
    "refused",
    "silent",
    "remark",
]
"""`stopped`: the user stopped sampling. `reached`: sampling ended because its goal was reached. `budget`: the budget
was spent first. `limited`: a setting was lowered to keep a time limit. `truncated`: the model read only part of the
text. `changed-text`: a character was replaced. `inexact`: scores may be off by more than the tolerance.
`uninformative`: scores cannot rank the units. `few-samples`: intervals may be too narrow. `result`: what the method
found, in words. `read-in`: how an explanation of another package was imported. `refused`: why a text of
a list has no explanation. `silent`: the feature that is explained is not active. `remark`: anything
else."""


@final
class Note(str):
    """A sentence with a kind; programs test the kind, never the words."""

    kind: NoteKind

    def __new__(cls, text: str, kind: NoteKind = "remark") -> "Note":
        note = str.__new__(cls, text)
        note.kind = kind
        return note

    def as_dict(self) -> dict[str, str]:
        """Kind and text, ready for JSON."""
        return {"kind": self.kind, "text": str(self)}

    @staticmethod
    def of(kept: "str | dict") -> "Note":
        """A note from its JSON form; a bare sentence, as in older files, is a remark."""
        return Note(kept, "remark") if isinstance(kept, str) else Note(kept["text"], kept["kind"])
