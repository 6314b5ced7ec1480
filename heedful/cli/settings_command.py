"""A command whose settings are options too, and are printed by its help."""

from abc import ABC, abstractmethod
from dataclasses import MISSING, fields
from typing import Any

from typer.core import TyperCommand


class SettingsCommand(TyperCommand, ABC):
    """A command whose help also lists the settings. They are read from the dataclasses only when help is requested."""

    @abstractmethod
    def settings_help(self) -> str:
        """Every setting with its default, as Markdown."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help, settings included."""
        self.help = f"{self.help}\n\n{self.settings_help()}"
        TyperCommand.format_help(self, ctx, formatter)


def list_settings(members: dict[str, Any]) -> str:
    """The settings of each dataclass with their defaults, as Markdown."""
    options = {
        title: " ".join(
            f"`--{field.name.replace('_', '-')} {field.default}`"
            for field in fields(member)
            if field.default is not MISSING
        )
        for title, member in members.items()
    }
    lines = [f"- {title}: {own}" for title, own in options.items() if own]
    return "\n".join(["Settings are options too. With their defaults:\n", *lines])
