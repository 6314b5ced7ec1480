"""`compare` and `trust` of one model or of several: a list of models, or a mapping from names to models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, final, overload, runtime_checkable

from heedful.errors import BadInput
from heedful.evaluation import comparison
from heedful.evaluation import trust as trust_module
from heedful.evaluation.comparison import Comparison
from heedful.evaluation.report import Report
from heedful.models import Model, check_model

P = ParamSpec("P")
One = TypeVar("One", covariant=True)
Many = TypeVar("Many", covariant=True)


@final
@dataclass(frozen=True, eq=False)
class Comparisons:
    """One comparison per model on the same text, by the name of the model."""

    comparisons: Mapping[str, Comparison]

    def as_dict(self) -> dict[str, object]:
        """The comparisons, ready for JSON."""
        return {name: result.as_dict() for name, result in self.comparisons.items()}

    def __repr__(self) -> str:
        return f"<comparisons: {', '.join(self.comparisons)[:250]}>"

    def _repr_html_(self) -> str:
        from heedful.render.several import several_page

        return several_page(self)


@final
@dataclass(frozen=True, eq=False)
class Reports:
    """One trust report per model on the same texts, by the name of the model."""

    reports: Mapping[str, Report]

    @property
    def recommended(self) -> dict[str, dict[str, str | None]]:
        """The method that each model's report recommends for each use; None if there is no significant winner."""
        return {name: {v.use: v.recommended for v in report.verdicts} for name, report in self.reports.items()}

    def as_dict(self) -> dict[str, object]:
        """The reports, ready for JSON."""
        return {name: result.as_dict() for name, result in self.reports.items()}

    def __repr__(self) -> str:
        return f"<trust reports: {', '.join(self.reports)[:250]}>"

    def _repr_html_(self) -> str:
        from heedful.render.several import several_page

        return several_page(self)


@runtime_checkable
class _OneOrSeveral(Protocol[P, One, Many]):
    @overload
    def __call__(self, model: Model, /, *args: P.args, **kwargs: P.kwargs) -> One: ...
    @overload
    def __call__(self, model: Sequence[Model] | Mapping[str, Model], /, *args: P.args, **kwargs: P.kwargs) -> Many: ...


def _of_several(
    function: Callable[Concatenate[Model, P], One], gather: Callable[[dict[str, Any]], Many]
) -> _OneOrSeveral[P, One, Many]:
    """The function, for several models too; of a folder `out` each has a part."""

    @wraps(function)
    def call(model: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(model, list | tuple | Mapping):
            return function(model, *args, **kwargs)
        models = dict(model) if isinstance(model, Mapping) else {f"model {n}": one for n, one in enumerate(model, 1)}
        if not models:
            raise BadInput("The list of models is empty; give at least one model.")
        for one in models.values():
            check_model(one)
        out = kwargs.pop("out", None)
        parts = {name: {} if out is None else {"out": Path(out) / folder_name(name)} for name in models}
        return gather({name: function(one, *args, **kwargs, **parts[name]) for name, one in models.items()})

    return call


def folder_name(name: str) -> str:
    """The name of a model as the name of a folder: the end of its path, letters and digits."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in Path(name).name) or "model"


compare = _of_several(comparison.compare, Comparisons)
trust = _of_several(trust_module.trust, Reports)
