"""`compare` and `trust` of one model or of several: a list of models, or a mapping from names to models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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


@final
@dataclass(frozen=True, eq=False)
class SideBySide:
    """Results of several models by the names of the models: comparisons of one text, or trust reports."""

    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    reports: Mapping[str, Report] = field(default_factory=dict)

    @property
    def headlines(self) -> dict[str, dict[str, str]]:
        """What each report says to use for each use; a method only if it is distinguishable from the others."""
        return {name: {v.use: v.headline for v in report.verdicts} for name, report in self.reports.items()}

    def as_dict(self) -> dict[str, object]:
        """The results by model, ready for JSON."""
        return {name: result.as_dict() for name, result in {**self.comparisons, **self.reports}.items()}

    def __repr__(self) -> str:
        names = ", ".join({**self.comparisons, **self.reports})
        return f"<{'comparisons' if self.comparisons else 'trust reports'} of {names[:250]}>"

    def _repr_html_(self) -> str:
        from heedful.render.several import several_page

        return several_page(self)


@runtime_checkable
class _OneOrSeveral(Protocol[P, One]):
    @overload
    def __call__(self, model: Model, /, *args: P.args, **kwargs: P.kwargs) -> One: ...
    @overload
    def __call__(
        self, model: Sequence[Model] | Mapping[str, Model], /, *args: P.args, **kwargs: P.kwargs
    ) -> SideBySide: ...


def _of_several(function: Callable[Concatenate[Model, P], One], results: str) -> _OneOrSeveral[P, One]:
    """The function, for several models too; each has a folder of its own in `out`."""

    run: Callable[..., Any] = function

    @wraps(function)
    def call(model: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(model, list | tuple | Mapping):
            return run(model, *args, **kwargs)
        models = dict(model) if isinstance(model, Mapping) else {f"model {n}": one for n, one in enumerate(model, 1)}
        if not models:
            raise BadInput("The list of models is empty; give at least one model.")
        for one in models.values():
            check_model(one)
        by_name: dict[str, Any] = {}
        for name, one in models.items():
            out = kwargs.get("out")
            own = {"out": Path(out) / folder_name(name)} if isinstance(out, str | Path) else {}
            by_name[name] = run(one, *args, **kwargs | own)
        return SideBySide(**{results: by_name})

    return call


def folder_name(model: str) -> str:
    """The name of a model as the name of a folder: letters and digits. The whole name, so that two models differ."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in model).strip("-") or "model"


compare = _of_several(comparison.compare, "comparisons")
trust = _of_several(trust_module.trust, "reports")
