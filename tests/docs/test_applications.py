"""The sample application on the page about applications runs, and is short."""

import ast
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest

import batchmill
import batchmill.cli
import batchmill.service
from tests.docs.pages import ROOT, Page, code_in
from tests.docs.programs import SUBPROCESS, TIMEOUT, Directory

PAGE = Page(ROOT / "docs/howto/applications.md")
(SAMPLE,) = (block for block in PAGE.blocks("python") if block.file == "notes.py")
PUBLIC = {"cli", "config", "service"}
APPS = "Applications use public names"


@pytest.fixture
def directory(dsn: str, tmp_path: Path) -> Directory:
    (tmp_path / "notes.py").write_text(SAMPLE.text)
    own = {"DATABASE_URL": dsn, "BATCHMILL_ARTIFACTS": str(tmp_path / "artifacts")}
    return Directory(tmp_path, os.environ | own | SUBPROCESS)


def events_in(text: str) -> list[tuple[str, str]]:
    return re.findall(r"id: (\S+)\nevent: (\w+)\n", text)


def next_events(
    client: httpx.Client, url: str, count: int, **headers: str
) -> list[tuple[str, str]]:
    """The next events of a stream that does not end."""
    text = ""
    with client.stream("GET", url, headers=headers) as answer:
        assert answer.status_code == 200
        for piece in answer.iter_text():
            text += piece
            if len(found := events_in(text)) >= count:
                return found
    raise AssertionError(text)


def test_the_sample_application_runs(directory: Directory) -> None:
    with (
        directory.serving("batchmill", "--app", "notes:app", "serve") as url,
        httpx.Client(base_url=url, timeout=TIMEOUT) as client,
    ):
        files = [
            ("notes", ("a.txt", b"two words")),
            ("notes", ("b.txt", b"")),
            ("other", ("c", b"x")),
        ]
        sent = client.post("/api/notes", data={"author": "Ada"}, files=files)
        assert sent.status_code == 202, sent.text
        upload, (note, empty) = sent.json()["upload"], sent.json()["notes"]

        stream = client.get(f"/api/notes/{note['id']}/stream").text
        assert [name for _, name in events_in(stream)] == ["reading", "counted"]
        assert client.get(f"/api/notes/{note['id']}").json()["words"] == 2
        assert "event: failed" in client.get(f"/api/notes/{empty['id']}/stream").text

        link = client.post(f"/api/notes/{note['id']}/link").json()["url"]
        assert httpx.get(f"{url}{link}").text == stream

        at = f"/api/uploads/{upload}/stream"
        found = next_events(client, at, 4)
        assert sorted(name for _, name in found) == ["counted", "failed", "reading", "reading"]
        assert next_events(client, at, 3, **{"Last-Event-ID": found[0][0]}) == found[1:]

        missing = client.get("/api/notes/00000000-0000-4000-8000-000000000000")
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")


def test_a_page_of_the_sample_application_signs_in(directory: Directory) -> None:
    with (
        directory.serving("batchmill", "--app", "notes:app", "serve") as url,
        httpx.Client(base_url=url, timeout=TIMEOUT) as client,
    ):
        made = directory.shell(f"{sys.executable} -m batchmill keys create page --tenant ada")
        assert made.returncode == 0, made.stderr
        key = made.stdout.strip()
        note: dict[str, Any] = {"files": [("notes", ("a.txt", b"two words"))]}
        refused = client.post("/api/notes", **note)
        assert (refused.status_code, refused.json()["ok"]) == (401, False)
        assert client.post("/api/session", json={"key": key}).json() == {
            "ok": True,
            "tenant": "ada",
        }
        assert client.post("/api/notes", **note).json()["error"]["code"] == "forbidden"
        token = {"X-CSRF-Token": client.cookies["batchmill_csrf"]}
        assert client.post("/api/notes", headers=token, **note).status_code == 202
        client.delete("/api/session")
        assert client.post("/api/notes", headers=token, **note).status_code == 401


def test_the_sample_application_is_short_and_uses_public_names_only() -> None:
    assert len(SAMPLE.text.splitlines()) < 150
    imported = [
        node for node in ast.walk(ast.parse(SAMPLE.text)) if isinstance(node, ast.ImportFrom)
    ]
    for node in imported:
        if (node.module or "").startswith("batchmill"):
            module = batchmill if node.module == "batchmill" else batchmill.service
            assert node.module == module.__name__
            assert {alias.name for alias in node.names} <= set(module.__all__)


@pytest.mark.parametrize("module", [batchmill.service, batchmill.cli], ids=lambda it: it.__name__)
def test_every_name_for_applications_is_documented(module: object) -> None:
    documented = code_in(Page(ROOT / "docs/reference/python.md"))
    assert set(module.__all__) - {"main"} <= documented  # type: ignore[attr-defined]


def test_the_contract_of_applications_covers_every_private_module() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    (contract,) = (each for each in contracts if each["name"].startswith(APPS))
    assert "ignore_imports" not in contract and contract["source_modules"] == ["apps"]
    source = Path(batchmill.__file__).parent
    modules = {path.stem for path in source.glob("*.py")} | {
        path.parent.name for path in source.glob("*/__init__.py")
    }
    private = {f"batchmill.{name}" for name in modules - PUBLIC if not name.startswith("__")}
    packages = {"batchmill.cli.**", "batchmill.service.**"}
    assert set(contract["forbidden_modules"]) == private | packages
