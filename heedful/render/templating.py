"""The jinja2 environment of every page: escaped text, no undefined names, no control characters."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from heedful.render.text_strip import short_title, visible


def fill_template(name: str, context: Mapping[str, object]) -> str:
    """The template `name` of the folder `templates`, filled with the context; all text is escaped."""
    return _environment().get_template(name).render(context)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("heedful.render"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["number"] = format
    environment.filters["short_title"] = lambda text, n: short_title(str(text), n)
    environment.globals["asset"] = _asset
    return environment


def _printable(value: Any) -> str:
    """A value as text without control characters; HTML is unchanged."""
    return value if isinstance(value, Markup) else visible(str(value))


def _asset(name: str) -> Markup:
    """A style sheet or script of heedful, inserted without escaping."""
    return Markup((files("heedful.render") / "templates" / name).read_text(encoding="utf-8"))
