"""Search over transcripts, by Postgres full text."""

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from apps.calls.analysis import sentences_of
from apps.calls.models import Transcript
from apps.calls.tables import CALLS
from batchmill import Client

# How Postgres reduces words to their stems. Words of other languages are compared as they are.
CONFIGURATIONS = {"de": "german", "en": "english", "es": "spanish", "fr": "french", "ru": "russian"}
MOMENTS = 3


async def keep_words(mill: Client, call: UUID, transcript: Transcript) -> None:
    """Makes the transcript searchable. Can be repeated."""
    found = [
        {"speaker": each.speaker, "start_at": each.start, "end_at": each.end, "sentence": each.text}
        for each in sentences_of(transcript)
    ]
    await CALLS.rows(
        mill,
        "keep_transcript",
        call=call,
        configuration=CONFIGURATIONS.get(transcript.language[:2].lower(), "simple"),
        text=transcript.text,
        sentences=json.dumps(found),
    )


async def moments_of(
    client: Client, calls: Iterable[UUID], words: str
) -> dict[UUID, list[dict[str, Any]]]:
    """The sentences that have the words, for each call."""
    found = await CALLS.rows(
        client, "find_moments", ids=[str(id) for id in calls], words=words, each=MOMENTS
    )
    moments: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for row in found:
        moments[row["call_id"]].append(
            {
                "speaker": row["speaker"],
                "start": row["start_at"],
                "end": row["end_at"],
                "text": row["sentence"],
            }
        )
    return moments
