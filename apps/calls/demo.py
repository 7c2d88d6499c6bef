"""Demo: takes a recording of an invented call through all stages, in the terminal."""

import asyncio
from uuid import uuid4

from apps.calls.analysis import Analysis
from apps.calls.mill import mill, settings
from apps.calls.models import CallResult, SubmittedRecording, Transcript
from apps.calls.samples import sample
from apps.calls.tables import CALLS
from apps.calls.tasks import extract_audio, settle
from batchmill import Batch, WorkerOptions
from batchmill.cli import follow_batch, note, out, table

NAME = "sample-call.wav"
PAGE = "http://127.0.0.1:8310/calls/"


async def main() -> None:
    note("Speaking a sample call, and transcribing it on this machine. No service is asked.")
    async with mill.running(WorkerOptions(name="demo", grace=5)):
        batch = await submit((await asyncio.to_thread(sample)).wav)
        await follow_batch(batch)
        results = await batch.results()
        if results.values:
            await show(CallResult.model_validate(results.values[0]))
    out().print(f"\nTo see it in a browser, run `make serve APP=calls PORT=8310`: {PAGE}{batch.id}")


async def submit(wav: bytes) -> Batch:
    """The same as an upload of the tenant `default`."""
    client, upload = mill.as_tenant("default"), uuid4()
    file = await client.artifacts.save(NAME, wav)
    recording = SubmittedRecording(
        name=NAME, provider="local", language=settings.language, file=file.reference
    )
    async with client.transaction() as conn:
        batch = await client.submit(
            extract_audio,
            [recording],
            connection=conn,
            labels={"application": "calls", "upload": str(upload)},
            on_finish=settle,
        )
        row = recording.model_dump(include={"name", "provider", "language"})
        await CALLS.rows(conn, "add_call", id=batch.id, tenant="default", upload=upload, **row)
    return batch


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
