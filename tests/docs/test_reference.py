"""The reference is complete and agrees with the code."""

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

import batchmill
from batchmill import Batch, BatchmillError, Job, JobHandle, Mill
from batchmill.cli.app import app
from batchmill.cli.exits import MEANINGS
from batchmill.domain import failure
from batchmill.domain.event import LAST_EVENTS
from batchmill.domain.outcome import STATE_AFTER
from batchmill.store.errors import OWN
from tests.docs.pages import INLINE, ROOT, Page, code_in, pages

REFERENCE = ROOT / "docs/reference"
SIGNATURE = re.compile(r"(\w+(?:\.\w+)?)\((.*)\)")
TEST = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")
PYTHON = Page(REFERENCE / "python.md")


@pytest.mark.parametrize("name", batchmill.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    assert name in code_in(PYTHON)


@pytest.mark.parametrize("kind", [Mill, Batch, JobHandle, Job])
def test_every_public_method_is_documented(kind: type) -> None:
    documented = code_in(PYTHON)
    internal = {"find_task", "database", "register_tasks", "load_result", "prepare", "send"}
    internal |= {"enqueued", "submitted", "permit", "notifying", "builtin_tasks", "served_tasks"}
    for name, _ in inspect.getmembers(kind, lambda it: callable(it) or isinstance(it, property)):
        if not name.startswith("_") and name not in internal:
            assert name in documented or f"{kind.__name__}.{name}" in documented, (
                f"{kind.__name__}.{name}"
            )


def signatures() -> Iterator[tuple[str, str]]:
    for span in INLINE.findall(PYTHON.text):
        if (match := SIGNATURE.fullmatch(span)) and match[1].partition(".")[0] in batchmill.__all__:
            yield match[1], match[2]


@pytest.mark.parametrize(("name", "parameters"), list(signatures()), ids=lambda it: it)
def test_documented_signatures_match_the_code(name: str, parameters: str) -> None:
    owner, _, method = name.partition(".")
    target: Any = getattr(batchmill, owner)
    target = getattr(target, method) if method else target
    real = [
        parameter
        for parameter in inspect.signature(target).parameters.values()
        if parameter.name != "self"
    ]
    documented = ast.parse(f"def f({parameters.replace('…', '...')}): ...").body[0]
    assert isinstance(documented, ast.FunctionDef)
    if method == "task":
        return
    several = [documented.args.vararg] if documented.args.vararg else []
    arguments = [*documented.args.args, *several, *documented.args.kwonlyargs]
    named = [each for each in real if each.kind is not inspect.Parameter.VAR_KEYWORD]
    assert [each.arg for each in arguments] == [each.name for each in named]
    defaults = [*documented.args.defaults, *filter(None, documented.args.kw_defaults)]
    given = [each.default for each in named if each.default is not inspect.Parameter.empty]
    assert len(defaults) == len(given)
    for shown, default in zip(defaults, given, strict=True):
        if isinstance(shown, ast.Constant) and shown.value is not ...:
            assert shown.value == default


def kinds_of(error: type[BatchmillError]) -> Iterator[type[BatchmillError]]:
    for kind in error.__subclasses__():
        yield kind
        yield from kinds_of(kind)


def test_every_error_is_documented_with_its_code() -> None:
    rows = [line for line in PYTHON.text.splitlines() if line.startswith("| `")]
    for error in kinds_of(BatchmillError):
        if error.__name__ in batchmill.__all__:
            row = next(line for line in rows if re.match(rf"\| `{error.__name__}\b", line))
            assert f"| `{error.code}` |" in row


def test_every_failure_code_is_documented() -> None:
    documented = code_in(Page(ROOT / "docs/howto/errors.md"))
    assert set(failure._MEANINGS) <= documented
    for meaning in failure._MEANINGS.values():
        kind = "transient" if meaning.transient else "permanent"
        assert f"| `{meaning.code}` | {kind} |" in Page(ROOT / "docs/howto/errors.md").text


def test_every_http_status_is_in_the_row_of_its_failure_code() -> None:
    rows = Page(ROOT / "docs/howto/errors.md").text.splitlines()
    for status, code in failure._CODE_BY_STATUS.items():
        (row,) = (line for line in rows if line.startswith(f"| `{code}` |"))
        assert str(status) in row


def commands(command: Any, path: str = "batchmill") -> Iterator[tuple[str, Any]]:
    for name, child in getattr(command, "commands", {}).items():
        yield f"{path} {name}", child
        yield from commands(child, f"{path} {name}")


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_is_documented(path: str) -> None:
    page = Page(REFERENCE / "cli.md")
    assert f"`{path}" in page.text
    options = {name for each in COMMANDS[path].params for name in each.opts if name[:2] == "--"}
    assert options - {"--help"} <= code_in(page)


def test_every_exit_code_is_documented() -> None:
    text = Page(REFERENCE / "cli.md").text
    for code in MEANINGS:
        assert f"| {code.value} |" in text


def test_every_event_is_documented() -> None:
    of_batches = {"batch_started", "batch_retried", "item_duplicate", *LAST_EVENTS}
    assert of_batches | set(STATE_AFTER) <= code_in(Page(REFERENCE / "events.md"))


def test_every_sqlstate_is_documented() -> None:
    text = Page(REFERENCE / "sql.md").text
    for state, error in OWN.items():
        assert f"| `{state}` | `{error.__name__}` |" in text


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_test_that_the_documents_name_exists(page: Page) -> None:
    for path, name in TEST.findall(page.prose):
        assert (ROOT / path).exists(), path
        assert not name or f"def {name}(" in (ROOT / path).read_text(), name
