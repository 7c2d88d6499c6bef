"""The code in the documentation runs: programs as processes, snippets in their order."""

import ast
import asyncio
import importlib.util
import inspect
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer.main

from batchmill import Mill
from batchmill.cli.app import app
from tests.docs.pages import ROOT, Block, Page, pages
from tests.docs.programs import SUBPROCESS, TIMEOUT, Directory

EVERY_PAGE = pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)


def is_program(block: Block) -> bool:
    return block.file is not None


def imports(block: Block) -> set[str]:
    imported = {
        alias.name if isinstance(node, ast.Import) else node.module or ""
        for node in ast.walk(ast.parse(block.text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    return {name.partition(".")[0] for name in imported}


def can_run(block: Block) -> bool:
    """False if the block imports a package that is not installed, such as Django."""
    own = {str(other.file).removesuffix(".py") for other in block.page.blocks("python")}
    return all(importlib.util.find_spec(name) for name in imports(block) - own)


@EVERY_PAGE
def test_every_python_block_compiles(page: Page) -> None:
    for block in page.blocks("python"):
        compile(block.padded, page.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


PAGES_WITH_PROGRAMS = [page for page in pages() if any(map(is_program, page.blocks("python")))]


@pytest.mark.parametrize("page", PAGES_WITH_PROGRAMS, ids=lambda page: page.name)
def test_programs_run(page: Page, dsn: str, tmp_path: Path) -> None:
    """Runs them in the order of the page, with the workers that the page starts, and tests last.

    The files of a page can import each other. A file that another one imports is not run itself.
    """
    for block in filter(is_program, page.blocks("python", "sql", "js")):
        path = tmp_path / str(block.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
    imported = set().union(*map(imports, page.blocks("python")))
    own = {"DATABASE_URL": dsn, "BATCHMILL_ARTIFACTS": str(tmp_path / "artifacts")}
    directory = Directory(tmp_path, os.environ | own | SUBPROCESS)
    tests: list[str] = []
    with ExitStack() as stack:
        for block in page.blocks("python", "sh"):
            if block.language == "sh":
                for words in worker_commands(block):
                    stack.enter_context(directory.running(words))
            elif not block.file or not can_run(block) or block.file[:-3] in imported:
                continue
            elif block.file.startswith("test_"):
                tests.append(block.file)
            else:
                directory.run(block.file)
        if tests:
            directory.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)


def worker_commands(block: Block) -> Iterator[list[str]]:
    """The worker commands of a block whose module is on the page."""
    files = {other.file for other in block.page.blocks("python")}
    for line in block.text.splitlines():
        match = re.match(r"batchmill (worker --app (\w+):mill)$", line)
        if match and f"{match[2]}.py" in files:
            yield match[1].split()


def has_snippets(page: Page) -> bool:
    return any(not is_program(block) for block in page.blocks("python", "sql"))


PAGES_WITH_SNIPPETS = list(filter(has_snippets, pages()))


@pytest.mark.parametrize("page", PAGES_WITH_SNIPPETS, ids=lambda page: page.name)
async def test_snippets_run_in_the_order_of_the_page(
    page: Page, dsn: str, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DATABASE_URL", dsn)
    monkeypatch.setenv("BATCHMILL_ARTIFACTS", str(tmp_path / "artifacts"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    try:
        for block in page.blocks("python", "sql"):
            if is_program(block):
                continue
            if block.language == "sql":
                # Rolled back, because roles would outlive the database.
                with sql.transaction(force_rollback=True):
                    sql.execute(block.text.encode())
            elif can_run(block):
                await run_snippet(block, names)
    finally:
        for mill in [value for value in names.values() if isinstance(value, Mill)]:
            await asyncio.to_thread(mill.sync.close)
            await mill.close()


async def run_snippet(block: Block, names: dict[str, Any]) -> None:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(block.padded, block.page.name, "exec", flags, dont_inherit=True)
    ran = eval(code, names)
    if inspect.isawaitable(ran):
        await asyncio.wait_for(ran, TIMEOUT)


@EVERY_PAGE
def test_every_link_target_exists(page: Page) -> None:
    for path, anchor in page.links:
        assert path.exists(), f"{page.name} links to {path}"
        if anchor:
            assert anchor in Page(path).anchors, f"{page.name} links to #{anchor} of {path.name}"


def test_the_readme_links_to_every_page() -> None:
    linked = {path for path, _ in Page(ROOT / "README.md").links}
    assert {page.path for page in pages()} - linked == {ROOT / "README.md"}


@EVERY_PAGE
def test_every_command_exists(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in page.commands:
        for word in words:
            if word.endswith(".jsonl"):
                Path(word).touch()
        parse(words)
    for words in page.mentions:
        find(words)


def parse(words: list[str]) -> None:
    """Parses a command line like the program does. Raises if it is not valid."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("batchmill", list(words))
    while rest := [*context._protected_args, *context.args]:
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
        if not hasattr(command, "commands"):
            return


def find(words: list[str]) -> None:
    """Checks that every word before the first argument or option names a command."""
    command: Any = typer.main.get_command(app)
    for word in words:
        if not hasattr(command, "commands"):
            return
        assert word in command.commands or word.startswith("-"), f"batchmill {' '.join(words)}"
        command = command.commands.get(word, command)
