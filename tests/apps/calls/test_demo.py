"""The demo in the terminal."""

import asyncio
import os
import shutil
import sys

import pytest

from apps.calls import demo
from apps.calls.settings import CallsSettings
from apps.calls.tables import CALLS
from batchmill import Mill
from tests.apps.calls.conftest import Organisation, SharedCalls


def test_the_demo_says_which_service_gets_the_transcript(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "settings", CallsSettings.read())
    assert demo.about_services() == "No external service is used."
    monkeypatch.setenv("CALLS_MODEL_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("CALLS_MODEL_NAME", "small")
    monkeypatch.setattr(demo, "settings", CallsSettings.read())
    assert "is sent to small at 127.0.0.1:9," in demo.about_services()


async def test_the_demo_shows_the_transcript_and_the_analysis_of_its_call(
    calls: SharedCalls,
) -> None:
    """The page of the server has the call too. The server's worker may do a part of the work."""
    if shutil.which("espeak-ng") is None:
        pytest.skip("Debian's espeak-ng is not installed.")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "apps.calls.demo"),
        env={**os.environ, **calls.environment, "COLUMNS": "200"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    shown = output.decode()
    assert process.returncode == 0, shown
    for line in (
        "No external service is used.",
        "Transcript",
        "Talk time: Speaker 1",
        "Summary",
        "Questions",
        "Action items",
    ):
        assert line in shown, shown
    said = [line.split() for line in shown.splitlines() if "  Speaker " in line]
    assert {words[2] for words in said} == {"1", "2"}
    assert any({"Speaker", "2", "boiler"} <= set(words) for words in said), shown
    async with Mill(calls.dsn, schemas=[CALLS]) as mill:
        key, _ = await mill.keys.create("test", tenant="default")
    id = shown.rpartition("/calls/")[2].strip()
    call = (await Organisation("default", key, calls.server.url).get(f"/api/calls/{id}")).json()
    assert (call["name"], call["status"]) == (demo.NAME, "done")
