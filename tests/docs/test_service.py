"""The commands on the page about the service run with curl, and its tables are complete."""

import inspect
import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from fastapi.routing import APIRoute

from batchmill import BatchmillError, LeaseLost, Mill, Refused
from batchmill.errors import HandlerError
from batchmill.service import create_app
from batchmill.service.app import PARTS
from batchmill.service.links import ByKeyOrLink
from batchmill.service.problems import STATUSES
from batchmill.service.routes import system
from batchmill.service.schemas import NewBatch, NewJob
from tests.docs.pages import ROOT, Block, Page, code_in
from tests.docs.programs import SUBPROCESS, TIMEOUT, Directory

HTTP = Page(ROOT / "docs/reference/http.md")
PAGE = Page(ROOT / "docs/howto/service.md")
ADDRESS = "127.0.0.1:8200"
# Commands that install packages, or start what the test itself starts.
NOT_RUN = re.compile(r"^(pip|batchmill (--app \S+ )?(serve|worker|migrate))\b", re.MULTILINE)
CURL = re.compile(r"\bcurl\b(?!\()")
SEPARATOR = "\x1e"
CURL_SETTINGS = r"""
silent
show-error
max-time = 30
write-out = "%{stderr}%{http_code} %{method} %{url_effective}\n"
"""


def is_run(block: Block) -> bool:
    return not NOT_RUN.search(block.text)


def expected_statuses() -> Iterator[tuple[str, str]]:
    """Every call on the page, with the status in the comment after it; without one, a success."""
    for block in filter(is_run, PAGE.blocks("sh")):
        for line in block.lines:
            if CURL.search(line) and not line.startswith("curl()"):
                assert len(CURL.findall(line)) == 1, line
                status = re.search(r"# (\d{3})$", line)
                yield line, status[1] if status else "2.."


@pytest.fixture
def directory(dsn: str, tmp_path: Path) -> Directory:
    """A directory with the files of the page and the programs that it calls."""
    for block in PAGE.blocks("python"):
        (tmp_path / str(block.file)).write_text(block.text)
    (tmp_path / "curl").mkdir()
    (tmp_path / "curl/.curlrc").write_text(CURL_SETTINGS)
    (tmp_path / "bin").mkdir()
    batchmill = tmp_path / "bin/batchmill"
    batchmill.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m batchmill "$@"\n')
    batchmill.chmod(0o755)
    own = {
        "DATABASE_URL": dsn,
        "BATCHMILL_HOME": str(tmp_path / "home"),
        "CURL_HOME": str(tmp_path / "curl"),
        "PATH": f"{batchmill.parent}:{os.environ['PATH']}",
    }
    return Directory(tmp_path, os.environ | SUBPROCESS | own)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed.")
def test_the_commands_of_the_page_run_from_top_to_bottom(directory: Directory) -> None:
    blocks = list(filter(is_run, PAGE.blocks("sh")))
    script = f"printf '{SEPARATOR}'\n".join(block.text for block in blocks)
    with directory.serving("batchmill", "serve", "--app", "sheets:mill", "--grace", "1") as url:
        ran = directory.shell(script.replace(f"http://{ADDRESS}", url))
    calls = re.findall(rf"^(\d{{3}}) ([A-Z]+) {url}(\S+)$", ran.stderr, re.MULTILINE)
    for (line, expected), (status, *called) in zip(expected_statuses(), calls, strict=False):
        assert re.fullmatch(expected, status), f"{status} {called}\n{line}\n{ran.stdout[-2000:]}"
    assert ran.returncode == 0 and len(calls) == len(list(expected_statuses())), ran.stderr
    for block, output in zip(blocks, ran.stdout.split(SEPARATOR), strict=True):
        if (shown := answer_after(block)) is not None:
            assert has_shape_of(documents(output)[-1], shown), f"line {block.line}: {output}"
    assert not uncalled([f"{method} {path.partition('?')[0]}" for _, method, path in calls])
    assert zip_names(directory.path / "batch.zip") == {"Ada.txt", "Ada (2).txt", "manifest.json"}


def uncalled(calls: list[str]) -> list[str]:
    """The routes that the page does not call."""
    return [route for route, _ in routes() if not any(map(pattern(route).fullmatch, calls))]


def pattern(route: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{\w+\}", "[^/]+", route))


def answer_after(block: Block) -> Any:
    """The JSON block directly after a block on the page, or None."""
    blocks = block.page.blocks("sh", "json", "python", "text", "js", "nginx")
    place = next(n for n, each in enumerate(blocks) if each.line == block.line)
    after = blocks[place + 1] if place + 1 < len(blocks) else None
    return json.loads(after.text) if after and after.language == "json" else None


def documents(text: str) -> list[Any]:
    parsed: list[Any] = []
    decoder = json.JSONDecoder()
    while text := text.strip():
        document, end = decoder.raw_decode(text)
        parsed.append(document)
        text = text[end:]
    return parsed


def has_shape_of(real: Any, shown: Any) -> bool:
    """Compares names and types of values.

    The real document may have more names. A value that is null in one of them may have any type
    in the other.
    """
    match shown:
        case dict():
            return isinstance(real, dict) and all(
                name in real and has_shape_of(real[name], value) for name, value in shown.items()
            )
        case list():
            return isinstance(real, list) and all(map(has_shape_of, real, shown))
        case _:
            return real is None or shown is None or type(real) is type(shown)


def zip_names(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def test_the_service_can_be_mounted_in_another_application(directory: Directory) -> None:
    (app,) = re.findall(r"^batchmill --app (\w+:app) serve --port", PAGE.text, re.MULTILINE)
    with (
        directory.serving("batchmill", "--app", app, "serve") as url,
        httpx.Client(base_url=f"{url}/mill", timeout=TIMEOUT) as client,
    ):
        batch = client.post("/v1/batches", json={"task": "greet", "items": ["Ada"]}).json()
        events = httpx.get(f"{url}{batch['links']['events']}", timeout=TIMEOUT).text
        assert "event: batch_completed" in events
        made = client.get(f"/v1/batches/{batch['id']}/results").json()
    assert [each["result"] for each in made["results"]] == ["Hello, Ada!"]


BY_KEY_OR_LINK = get_args(ByKeyOrLink)[1].dependency


def scope_of(route: APIRoute) -> str:
    for dependency in route.dependant.dependencies:
        if dependency.call is BY_KEY_OR_LINK:
            return "read or link"
        assert dependency.call
        wanted = inspect.getclosurevars(dependency.call).nonlocals
        if scope := wanted.get("scope"):
            return "operator" if wanted["tenant"] else str(scope)
    return "–"


def routes(*, described: bool = False) -> Iterator[tuple[str, str]]:
    for part in (*PARTS, system):
        for route in part.router.routes:
            assert isinstance(route, APIRoute) and route.methods
            path = ("" if part is system else "/v1") + route.path.replace(":path", "")
            if route.include_in_schema or not described:
                yield f"{' '.join(route.methods)} {path}", scope_of(route)


def test_the_reference_has_exactly_the_routes_of_the_service() -> None:
    documented = re.findall(r"^\| `([A-Z]+ /\S*)` \| ([\w –]+) \|", HTTP.text, re.MULTILINE)
    assert sorted(documented) == sorted(routes())


def test_openapi_has_the_same_routes() -> None:
    paths = create_app(Mill("postgresql://nowhere")).openapi()["paths"]
    described = {
        f"{method.upper()} {path}" for path, methods in paths.items() for method in methods
    }
    assert described == {route for route, _ in routes(described=True)}


def test_every_field_of_a_new_batch_is_documented() -> None:
    for page in (HTTP, PAGE):
        documented = code_in(page)
        assert {*NewBatch.model_fields, *NewJob.model_fields} <= documented, page.name


# Raised in handlers and fetchers, never while a request is answered.
NOT_OF_REQUESTS = (HandlerError, LeaseLost, Refused)


def errors(kind: type[BatchmillError] = BatchmillError) -> Iterator[type[BatchmillError]]:
    for error in kind.__subclasses__():
        # Applications have errors of their own.
        if error.__module__.startswith("batchmill."):
            yield error
            yield from errors(error)


def test_every_problem_is_in_the_row_of_its_status() -> None:
    rows = [line for line in PAGE.text.splitlines() if re.match(r"\| \d{3} \|", line)]
    for error in errors():
        status = next((status for kind, status in STATUSES if issubclass(error, kind)), None)
        if status is None or issubclass(error, NOT_OF_REQUESTS):
            continue
        assert any(
            row.startswith(f"| {status.value} |") and f"`{error.code}`" in row for row in rows
        ), error
