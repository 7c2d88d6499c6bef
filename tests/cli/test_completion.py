"""Shell completion offers names that it reads from the database."""

import os
import subprocess
import sys

import pytest

from batchmill import Mill


def completed(words: str, **settings: str) -> list[str]:
    shell = {
        "_BATCHMILL_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "batchmill"],
        env=os.environ | shell | settings,
        capture_output=True,
        text=True,
    )
    assert ended.stderr == ""
    return ended.stdout.split()


@pytest.mark.usefixtures("shop_mill")
def test_names_of_tasks_are_completed(dsn: str) -> None:
    assert completed("batchmill submit h", DATABASE_URL=dsn) == ["hold", "hold_in_process"]
    assert completed(f"batchmill jobs --dsn {dsn} --task pa") == ["pack"]


async def test_names_of_limits_and_schedules_are_completed(dsn: str, shop_mill: Mill) -> None:
    await shop_mill.limits.set("tenant:acme", slots=1)
    await shop_mill.schedules.save("nightly", "0 3 * * *", "send", {"number": 1})
    assert completed("batchmill pause tenant", DATABASE_URL=dsn) == ["tenant:acme"]
    assert completed("batchmill schedules pause n", DATABASE_URL=dsn) == ["nightly"]


def test_states_are_completed() -> None:
    assert completed("batchmill batches --state p") == ["pending", "processing", "partial"]


def test_completion_prints_nothing_without_a_database() -> None:
    dsn = "postgresql://nobody@127.0.0.1:1/nothing"
    assert completed("batchmill submit h", DATABASE_URL=dsn) == []
    assert completed("batchmill submit h") == []
