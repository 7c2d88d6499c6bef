"""Asking fakellm, a server with the chat protocol of OpenAI that others have written."""

import hashlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.sites.answers import ProviderAnswers
from batchmill import Mill
from tests.apps.sites.providers.worker import PROMPTS, mill_on
from tests.library.tools import until
from tests.postgres import free_port

# Faults of a question depend on how often it has been asked. JSON is YAML.
RULES = [
    {
        "name": "broken",
        "when": {"messages_contain": "Question 3?", "turn_in": [1, 2]},
        "respond": {"status": 500, "error": "broken"},
    },
    {
        "name": "busy",
        "when": {"messages_contain": "Question 5?", "turn": 1},
        "respond": {"status": 429, "error": "busy"},
    },
    {
        "name": "unknown model",
        "when": {"model_matches": "unknown"},
        "respond": {"status": 404, "error": "no such model"},
    },
    {"name": "answer", "respond": {"content": "1. **Acme**\n2. Heart Roasters"}},
]


@pytest.fixture
async def fakellm(tmp_path: Path) -> AsyncIterator[str]:
    port = free_port()
    config = tmp_path / "fakellm.yaml"
    config.write_text(json.dumps({"version": 1, "rules": RULES}))
    command = [sys.executable, "-m", "fakellm.cli", "serve", f"--port={port}", f"--config={config}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        await until(lambda: answers(url))
        yield url
    finally:
        process.kill()
        process.wait()


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/_fakellm/stats", trust_env=False).is_success
    except httpx.TransportError:
        return False


def conversation(question: str) -> str:
    return f"conv-{hashlib.sha256(question.encode()).hexdigest()[:12]}"


async def results(dsn: str) -> list[ProviderAnswers]:
    mill: Mill = mill_on(dsn)
    async with mill.running():
        batch = await mill.submit("analyse", [None])
        (found,) = (await batch.results()).values
    return [ProviderAnswers.model_validate(it) for it in found]


def provider(url: str, **fields: Any) -> dict[str, Any]:
    return {"name": "fake", "baseUrl": f"{url}/v1", "model": "small", "slots": 2, **fields}


async def test_every_answer_is_bought_once_although_requests_fail(
    dsn: str, fakellm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITES_PROVIDERS", json.dumps([provider(fakellm)]))
    (found,) = await results(dsn)
    assert (found.state, len(found.answers)) == ("answered", 7)
    assert found.answers[0].text == "1. **Acme**\n2. Heart Roasters"
    assert found.answers[0].completion_tokens > 0
    log = httpx.get(f"{fakellm}/_fakellm/stats", trust_env=False).json()
    assert log["by_rule"] == {"answer": 7, "broken": 2, "busy": 1}
    asked = {prompt.text: 1 for prompt in PROMPTS} | {"Question 3?": 3, "Question 5?": 2}
    assert {name: it["turn"] for name, it in log["conversations"].items()} == {
        conversation(question): count for question, count in asked.items()
    }


async def test_a_provider_without_the_model_fails_alone(
    dsn: str, fakellm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = provider(fakellm, name="unknown", model="unknown", slots=1)
    monkeypatch.setenv("SITES_PROVIDERS", json.dumps([provider(fakellm), unknown]))
    first, second = await results(dsn)
    assert (first.state, second.state) == ("answered", "failed")
    assert {it.code for it in second.failures} == {"not_found"}
