"""Search over transcripts, by Postgres full text."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from apps.calls.analysis import sentences_of
from apps.calls.models import Transcript
from apps.calls.providers.languages import primary
from apps.calls.tables import CALLS
from batchmill import Client

# How Postgres 15 and later reduce words to their stems. Words of other languages are compared as
# they are.
CONFIGURATIONS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "nb": "norwegian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
MOMENTS = 3


async def keep_words(mill: Client, call: UUID, transcript: Transcript) -> None:
    """Makes the transcript searchable. Can be repeated, also with another transcript."""
    text, sentences = await asyncio.to_thread(texts_of, transcript)
    configuration = CONFIGURATIONS.get(primary(transcript.language), "simple")
    async with mill.transaction() as conn:
        # The first statement locks the row of the transcript, so two attempts take turns.
        await CALLS.rows(conn, "keep_transcript", call=call, configuration=configuration, text=text)
        await CALLS.rows(conn, "forget_sentences", call=call)
        await CALLS.rows(conn, "keep_sentences", call=call, sentences=sentences)


def texts_of(transcript: Transcript) -> tuple[str, str]:
    """The whole text, and its sentences as JSON. Sentences have no characters that Postgres cannot
    store."""
    found = sentences_of(transcript)
    rows = [
        {"speaker": each.speaker, "start_at": each.start, "end_at": each.end, "sentence": each.text}
        for each in found
    ]
    return " ".join(each.text for each in found), json.dumps(rows)


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
