"""Converts payloads and results of tasks to and from JSON text for the database."""

import json
import math
from collections.abc import Iterable, Mapping
from itertools import accumulate
from types import NoneType
from typing import Any

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic_core import ErrorDetails, PydanticSerializationError, from_json, to_json
from typing_extensions import TypeAliasType

from batchmill.domain.failure import storable
from batchmill.errors import InvalidInput, InvalidPayload, PayloadTooLarge

LIMIT = 1_048_576
DEEPEST = 100

# Pydantic's models and dataclasses keep their own configuration; all other types get this one.
CONFIG = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")

_PLAIN = (Any, dict, list, str, int, float, bool, dict[str, Any], list[Any])
_NOTHING = (Any, None, NoneType)
_ARRAYS = list | tuple | set | frozenset
_ABSENT = object()
_STEPS = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_REPLACEMENT = "\ufffd"
_NOT_STORABLE = "Input contains a NUL character or a lone surrogate"
_NOT_FINITE = "Input should be a finite number"


class Codec:
    """Reads and writes the JSON of one annotation. `Any` accepts every JSON value."""

    def __init__(self, annotation: Any = Any):
        adapter = _adapter(annotation)
        self._validator = adapter.validator
        self._serializer = adapter.serializer
        self._plain = annotation in _PLAIN
        self._may_be_nothing = annotation in _NOTHING

    def dump(self, value: Any, *, limit: int = LIMIT) -> str:
        """Returns the JSON text of an instance, or of plain data that validates as one."""
        if value is None and self._may_be_nothing:
            # Most handlers return this value. It needs no checks.
            return "null"
        value = self._validated(value)
        written = self._written(value)
        if len(written) > limit:
            raise PayloadTooLarge(
                f"The payload is {len(written):,} bytes of JSON; the limit is {limit:,}."
            )
        text = written.decode()
        self._require_fit(value, text)
        # Refuse here what no worker could read, before it is queued.
        self.load(text)
        return text

    def load(self, text: str | bytes) -> Any:
        try:
            return self._validator.validate_json(text)
        except ValidationError as error:
            raise _refusal(error, _parsed(text)) from None

    def load_parsed(self, data: Any) -> Any:
        """`load` for a value that was parsed as part of a larger JSON document."""
        # Only the simplest types validate Python data like JSON. For example, bytes do not.
        return self._validated(data) if self._plain else self.load(to_json(data))

    def _validated(self, value: Any) -> Any:
        try:
            return self._validator.validate_python(value)
        except ValidationError as error:
            raise _refusal(error, value) from None

    def _written(self, value: Any) -> bytes:
        try:
            return self._serializer.to_json(value, by_alias=True, round_trip=True, warnings=False)
        except PydanticSerializationError as error:
            data = self._as_python(value)
            _require_shallow(data)
            _require_storable(data)
            raise InvalidPayload("$", f"Input cannot be written as JSON: {error}") from None

    def _require_fit(self, value: Any, text: str) -> None:
        """Walks the value only if the text looks suspicious. Most payloads are never walked."""
        if "null" in text or _REPLACEMENT in text:
            # Pydantic writes a model's NaN as null, and a lone surrogate in a key as U+FFFD.
            data = self._as_python(value)
            if _looks_unstorable(data):
                _require_storable(data)
        if "NaN" in text or "Infinity" in text or "\\u0000" in text:
            _require_storable(_parsed(text))
        if is_deeper(text, DEEPEST):
            raise _too_deep()

    def _as_python(self, value: Any) -> Any:
        try:
            return self._serializer.to_python(value, by_alias=True, round_trip=True, warnings=False)
        except ValueError:
            return None


def is_deeper(text: str, levels: int) -> bool:
    """Whether valid JSON is nested deeper than `levels`. Avoids a Python step for each bracket."""
    if text.count("[") + text.count("{") <= levels:
        return False
    if '"' in text:
        text = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    steps = text.encode().translate(_STEPS, _NO_BRACKETS)
    # Most brackets are innermost pairs. Removing those reduces the depth by one.
    outer = memoryview(steps.replace(b"\x01\xff", b"")).cast("b")
    return 1 + max(accumulate(outer), default=0) > levels


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    try:
        # Pydantic accepts a configuration for an alias, but not for dataclasses and TypedDicts.
        alias: Any = TypeAliasType("alias", annotation)  # pyright: ignore
        return TypeAdapter(alias, config=CONFIG)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        reason = str(error.message).partition(". ")[0].removesuffix(".")
        raise InvalidInput(f"{annotation!r} cannot be converted to JSON: {reason}.") from None


def _parsed(text: str | bytes) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return None


def _refusal(error: ValidationError, value: Any) -> InvalidPayload:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    more = error.error_count() - 1
    reason = f"{first['msg']} (and {more} more)" if more else first["msg"]
    return InvalidPayload(_path(first, value), reason)


def _path(error: ErrorDetails, value: Any) -> str:
    """Returns the path in the value. Skips the union members that pydantic includes in its path."""
    path = "$"
    for position, step in enumerate(error["loc"], 1):
        child = _child(value, step)
        is_missing = error["type"] == "missing" and position == len(error["loc"])
        if child is not _ABSENT or is_missing:
            path, value = path + _step(step), child
    return path


def _child(value: Any, step: int | str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step, _ABSENT)
    if isinstance(step, str):
        return getattr(value, step, _ABSENT)
    return value[step] if isinstance(value, list | tuple) and step < len(value) else _ABSENT


def _step(key: Any) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if str(key).isidentifier() else f"[{json.dumps(str(key))}]"


def _looks_unstorable(data: Any) -> bool:
    """A fast check without false negatives. It may give a false positive for text."""
    try:
        text = to_json(data, inf_nan_mode="constants", bytes_mode="base64", serialize_unknown=True)
    except PydanticSerializationError:
        return True
    return b"NaN" in text or b"Infinity" in text


def _require_storable(data: Any) -> None:
    if problem := _problem(data):
        path, reason = problem
        raise InvalidPayload("$" + path, reason)


def _problem(value: Any) -> tuple[str, str] | None:
    """Returns the path and the reason of the first part that Postgres cannot store."""
    if isinstance(value, str):
        return None if storable(value) == value else ("", _NOT_STORABLE)
    if isinstance(value, float):
        return None if math.isfinite(value) else ("", _NOT_FINITE)
    for key, child in _children(value):
        if found := _problem(key) or _problem(child):
            path, reason = found
            return _step(key) + path, reason
    return None


def _require_shallow(data: Any) -> None:
    level: Iterable[Any] = [data]
    for _ in range(DEEPEST):
        # Deduplicate by identity, so that data that contains itself does not grow at each level.
        level = {id(child): child for parent in level for child in _containers(parent)}.values()
        if not level:
            return
    raise _too_deep()


def _too_deep() -> InvalidPayload:
    return InvalidPayload("$", f"Input is nested more than {DEEPEST} levels deep")


def _children(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, _ARRAYS) else ()


def _containers(value: Any) -> list[Any]:
    return [child for _, child in _children(value) if isinstance(child, dict | _ARRAYS)]
