"""How the pages of docs/reference/ read the code, without running it: an extension of griffe, named in mkdocs.yml."""

import ast
from typing import Any

from griffe import Attribute, Class, Expr, ExprName, ExprSubscript, ExprTuple, Extension, Function

SHAPED = {"Bool", "Float", "Float32", "Float64", "Int", "Int64", "Num", "Shaped", "UInt8"}


class Reference(Extension):
    """Shapes stay in quotes, and what a member of a catalogue says of itself stands under its description."""

    def on_function_instance(self, *, func: Function, **_: Any) -> None:
        keep_shapes(func.returns)
        for parameter in func.parameters:
            keep_shapes(parameter.annotation)

    def on_attribute_instance(self, *, attr: Attribute, **_: Any) -> None:
        keep_shapes(attr.annotation)

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        facts = {name: said(one) for name, one in cls.attributes.items() if is_fact(one)}
        if facts and cls.docstring is not None:
            lines = [f"- {name.replace('_', ' ')}: {value}" for name, value in facts.items()]
            cls.docstring.value = "\n".join([cls.docstring.value, "", *lines])


def keep_shapes(annotation: str | Expr | None) -> None:
    """Puts axis names back in quotes; griffe takes one that stands alone for the name of a type."""
    if not isinstance(annotation, Expr) or isinstance(annotation, ExprName):
        return
    if isinstance(annotation, ExprSubscript) and str(annotation.left) in SHAPED:
        assert isinstance(annotation.slice, ExprTuple)
        kind, axes = annotation.slice.elements
        # What could be read as Python has no spaces that mean anything: "unit", "step-1".
        bare = axes.strip("'\"") if isinstance(axes, str) else str(axes).replace(" ", "")
        annotation.slice.elements = [kind, f'"{bare}"']
        return
    for part in annotation.iterate(flat=False):
        keep_shapes(part)


def is_fact(attribute: Attribute) -> bool:
    """Whether it is a class variable with a value, as `name` and `needs` are."""
    return attribute.value is not None and "instance-attribute" not in attribute.labels and bool(attribute.annotation)


def said(attribute: Attribute) -> str:
    """The value in words: a string, yes or no, or the strings of a set; constants are looked up in the file."""
    value = attribute.value
    if isinstance(value, ExprName) and value.name in attribute.module.attributes:
        value = attribute.module.attributes[value.name].value
    found = [one.value for one in ast.walk(ast.parse(str(value))) if isinstance(one, ast.Constant)]
    words = [{True: "yes", False: "no"}.get(one, str(one)) for one in found]
    return f"`{words[0]}`" if attribute.name == "name" else ", ".join(words) or "nothing"
