"""Demo: takes a recording of an invented call through all stages, in the terminal."""

import asyncio
import sys
from urllib.parse import urlsplit
from uuid import uuid4

from apps.calls.analysis import Analysis
from apps.calls.mill import mill, settings
from apps.calls.models import CallResult, SubmittedRecording, Transcript
from apps.calls.samples import sample
from apps.calls.upload import submit
from batchmill import Batch, WorkerOptions
from batchmill.cli import follow_batch, note, out, table

NAME = "sample-call.wav"
PAGE = "http://127.0.0.1:8310/calls/"


async def main() -> None:
    note(f"Speaking a sample call, and transcribing it on this machine. {about_services()}")
    async with mill.running(WorkerOptions(name="demo", grace=5)):
        batch = await upload((await asyncio.to_thread(sample)).wav)
        await follow_batch(batch)
        results = await batch.results()
        for job in results.failed:
            sys.exit(f"The call failed: {job.error.message if job.error else job.state}")
        await show(CallResult.model_validate(results.values[0]))
    out().print(f"\nTo see it in a browser, run `make serve APP=calls PORT=8310`: {PAGE}{batch.id}")


def about_services() -> str:
    if settings.model is None:
        return "No external service is used."
    name, host = settings.model.name, urlsplit(settings.model.base_url).netloc
    return f"The transcript is sent to {name} at {host}, which writes the summary."


async def upload(wav: bytes) -> Batch:
    """The same as an upload of the tenant `default`."""
    client = mill.as_tenant("default")
    file = await client.artifacts.save(NAME, wav)
    recording = SubmittedRecording(name=NAME, provider="local", language="en", file=file.reference)
    (call,) = await submit(client, uuid4(), [recording])
    return call.batch


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


async def show(result: CallResult) -> None:
    transcript = Transcript.model_validate_json(await mill.artifacts.read(result.transcript))
    analysis = Analysis.model_validate_json(await mill.artifacts.read(result.analysis))
    lines = (
        (clock(each.start), f"Speaker {each.speaker}", each.text) for each in transcript.segments
    )
    out().print()
    out().print(table("at", "who", "what", rows=lines, title="Transcript"))
    times = (
        f"{each.name} {each.seconds:.0f} s ({each.share:.0%})" for each in analysis.talk.speakers
    )
    out().print(f"\nTalk time: {', '.join(times)}")
    for title, items in (
        ("Summary", analysis.summary.items),
        ("Questions", analysis.questions.items),
        ("Action items", analysis.action_items.items),
    ):
        out().print(f"\n{title}")
        for item in items:
            out().print(f"  {clock(item.quote.start)}  {item.quote.text}")


if __name__ == "__main__":
    asyncio.run(main())
