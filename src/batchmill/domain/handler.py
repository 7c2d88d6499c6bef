"""The payload and result types of a handler, read from its annotations."""

import functools
import inspect
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import (
    Any,
    Never,
    NoReturn,
    NotRequired,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from typing_extensions import TypedDict

from batchmill.domain.payload import CONFIG
from batchmill.errors import InvalidInput

_UNSUPPORTED = {
    Parameter.VAR_POSITIONAL: "*{}",
    Parameter.VAR_KEYWORD: "**{}",
    Parameter.POSITIONAL_ONLY: "{}, /",
}


@dataclass(frozen=True, slots=True)
class HandlerSignature:
    """`payload` and `result` are annotations, or `Any` if the handler has none.

    A handler with several payload parameters takes its payload as `{"name": value, …}`, which a
    TypedDict annotates. Parameters with a default may be omitted. `payload` is None for a handler
    that takes no payload.
    """

    job_parameter: str | None
    payload_parameters: tuple[str, ...]
    payload: Any
    result: Any
    is_async: bool

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        job_types: tuple[type, ...] = (),
        outcome_types: tuple[type, ...] = (),
    ) -> Self:
        hints = _hints(function)
        parameters = _parameters(function)
        job = _job_parameter(parameters, hints, job_types)
        rest = [parameter for parameter in parameters if parameter.name != job]
        return cls(
            job_parameter=job,
            payload_parameters=tuple(parameter.name for parameter in rest),
            payload=_payload(function, rest, hints),
            result=_result(hints.get("return", Any), outcome_types),
            is_async=_is_async(_target(function)),
        )

    @property
    def takes_job(self) -> bool:
        return self.job_parameter is not None

    def arguments(self, job: Any, payload: Any) -> dict[str, Any]:
        """Returns the keyword arguments for the handler."""
        names = self.payload_parameters
        arguments = {names[0]: payload} if len(names) == 1 else dict(payload or {})
        if self.job_parameter:
            arguments[self.job_parameter] = job
        return arguments


def _target(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.func if isinstance(function, functools.partial) else function


def _name(function: Callable[..., Any]) -> str:
    target = _target(function)
    return getattr(target, "__qualname__", type(target).__qualname__)


def _is_async(target: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(target.__call__)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = _target(function)
    try:
        return get_type_hints(
            target if inspect.isroutine(target) else target.__call__, include_extras=True
        )
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise InvalidInput(
            f"The annotations of the handler {_name(function)} cannot be resolved: {error}. "
            "They must be importable where the handler is defined."
        ) from None


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    bound = function.keywords if isinstance(function, functools.partial) else {}
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind in _UNSUPPORTED:
            written = _UNSUPPORTED[parameter.kind].format(parameter.name)
            raise InvalidInput(
                f"The handler {_name(function)} takes ({written}). A handler can take only a "
                "job, and its payload as named parameters."
            )
    return [parameter for parameter in parameters if parameter.name not in bound]


def _job_parameter(
    parameters: Sequence[Parameter], hints: Mapping[str, Any], job_types: tuple[type, ...]
) -> str | None:
    for parameter in parameters:
        annotation = hints.get(parameter.name)
        if isinstance(annotation, type) and issubclass(annotation, job_types):
            return parameter.name
    unannotated = parameters and parameters[0].name not in hints
    return "job" if unannotated and parameters[0].name == "job" else None


def _payload(
    function: Callable[..., Any], parameters: Sequence[Parameter], hints: Mapping[str, Any]
) -> Any:
    if len(parameters) > 1:
        return _arguments_type(function, parameters, hints)
    return hints.get(parameters[0].name, Any) if parameters else None


def _arguments_type(
    function: Callable[..., Any], parameters: Sequence[Parameter], hints: Mapping[str, Any]
) -> Any:
    fields = {each.name: _field(each, hints.get(each.name, Any)) for each in parameters}
    arguments: Any = TypedDict(_name(function), fields)  # pyright: ignore
    arguments.__pydantic_config__ = {**CONFIG, "extra": "forbid"}
    return arguments


def _field(parameter: Parameter, annotation: Any) -> Any:
    return annotation if parameter.default is Parameter.empty else NotRequired[annotation]


def _result(annotation: Any, outcome_types: tuple[type, ...]) -> Any:
    """Returns the annotation without outcome types such as `Advance` and `Snooze`."""
    is_union = get_origin(annotation) in (Union, types.UnionType)
    members = get_args(annotation) if is_union else (annotation,)
    no_result = (*outcome_types, Never, NoReturn)
    results = [member for member in members if (get_origin(member) or member) not in no_result]
    return functools.reduce(operator.or_, results) if results else types.NoneType
