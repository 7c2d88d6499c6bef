"""The table of settings has a row for every field of every settings class, and no other row."""

import dataclasses
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import pytest
from annotated_types import Ge, Le

# Their classes are found among the subclasses.
import apps.calls.settings
import apps.heatsync.settings
import apps.resumes.settings
import apps.sites.providers.configuration
import apps.sites.settings  # noqa: F401
from batchmill import InvalidInput, WorkerOptions
from batchmill.config import EnvironmentSettings
from tests.docs.pages import ROOT
from tests.docs.test_reference import COMMANDS

PAGE = ROOT / "docs/reference/settings.md"
FIELD = re.compile(r"`(\w+\.\w+)`")
TYPES = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    Path: "path",
    tuple: "list",
    dict: "table",
    Literal: "choice",
}
# Defaults that depend on the machine.
COMPUTED = {"processes": "the number of processors", "name": "host:pid"}
# A value at the bound or just inside, and one outside.
WORKER_BOUNDS: dict[str, tuple[Any, Any]] = {
    "over 0": (0.5, 0),
    "0 or more": (0, -1),
    "each over 0": ({"task": 1}, {"task": 0}),
    "–": ("any", None),
}


class Row(NamedTuple):
    """One row of the table."""

    name: str
    type: str
    default: str
    bounds: str


def rows() -> Iterator[tuple[str, Row]]:
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and (fields := FIELD.findall(cells[1])):
            name, _, kind, default, bounds, meaning = cells
            assert meaning, line
            for field in fields:
                yield field, Row(name.strip("`"), kind, default, bounds)


def environment_fields() -> Iterator[tuple[str, Row]]:
    for kind in settings_classes(EnvironmentSettings):
        for name in inspect.get_annotations(kind).keys() & kind.model_fields.keys():
            field = kind.model_fields[name]
            row = Row(
                str(field.validation_alias),
                type_of(field.annotation),
                shown(field.default),
                bounds_of(field.annotation, field.metadata),
            )
            yield f"{kind.__name__}.{name}", row


def settings_classes(base: type[EnvironmentSettings]) -> Iterator[type[EnvironmentSettings]]:
    for kind in base.__subclasses__():
        if not kind.__module__.startswith("tests."):
            yield kind
            yield from settings_classes(kind)


def type_of(annotation: Any) -> str:
    if type(None) in (members := get_args(annotation)):
        annotation = next(each for each in members if each is not type(None))
    if hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    return TYPES[get_origin(annotation) or annotation]


def bounds_of(annotation: Any, metadata: list[Any]) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(get_args(annotation))
    least = next((each.ge for each in metadata if isinstance(each, Ge)), None)
    most = next((each.le for each in metadata if isinstance(each, Le)), None)
    if least is None:
        return "–"
    return f"{least} or more" if most is None else f"{least} to {most}"


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value in (None, (), {}) else str(value)


def worker_default(field: dataclasses.Field[Any]) -> str:
    if field.name in COMPUTED:
        return COMPUTED[field.name]
    return shown({} if field.default is dataclasses.MISSING else field.default)


TABLE = list(rows())
DOCUMENTED = dict(TABLE)
FIELDS = dict(environment_fields())
WORKER = {f"WorkerOptions.{field.name}": field for field in dataclasses.fields(WorkerOptions)}


def test_every_field_has_one_row_and_every_row_a_field() -> None:
    assert sorted(name for name, _ in TABLE) == sorted([*FIELDS, *WORKER])


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_a_row_agrees_with_the_code(name: str) -> None:
    assert DOCUMENTED[name] == FIELDS[name]


@pytest.mark.parametrize("name", sorted(WORKER))
def test_a_row_of_a_worker_option_agrees_with_the_code(name: str) -> None:
    row, field = DOCUMENTED[name], WORKER[name]
    assert row.type == type_of(field.type)
    assert row.default == worker_default(field)
    options = {each for option in COMMANDS["batchmill worker"].params for each in option.opts}
    own = {f"--{field.name}", f"--{field.name.removesuffix('s')}"} & options
    assert row.name == (own.pop() if own else "–")


@pytest.mark.parametrize("name", sorted(WORKER))
def test_worker_options_accept_values_within_the_documented_bounds_only(name: str) -> None:
    field = name.partition(".")[2]
    allowed, refused = WORKER_BOUNDS[DOCUMENTED[name].bounds]
    WorkerOptions(**{field: allowed})
    if refused is not None:
        with pytest.raises(InvalidInput):
            WorkerOptions(**{field: refused})


def test_the_computed_defaults_are_as_documented() -> None:
    options = WorkerOptions()
    assert options.processes == os.cpu_count()
    assert options.name.endswith(f":{os.getpid()}")


def test_only_the_settings_read_the_environment() -> None:
    """`processes.py` passes the environment to child processes, and the demo of sites allows the
    address of its sample."""
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "apps").rglob("*.py")]
    readers = {
        str(path.relative_to(ROOT))
        for path in sources
        if re.search(r"\benviron\b(?!\")|\bgetenv\b|pydantic_settings", path.read_text())
    }
    assert readers == {
        "apps/calls/settings.py",
        "apps/heatsync/settings.py",
        "apps/resumes/settings.py",
        "apps/sites/demo.py",
        "apps/sites/providers/configuration.py",
        "apps/sites/settings.py",
        "src/batchmill/config.py",
        "src/batchmill/worker/processes.py",
    }
