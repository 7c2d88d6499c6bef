"""What the search stores of a transcript, and which sentences it returns."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from apps.calls.models import Transcript
from apps.calls.search import CONFIGURATIONS, keep_words, moments_of
from apps.calls.tables import CALLS
from batchmill import Mill
from tests.apps.calls.calls import segment, transcript
from tests.library.tools import one, rows

SENTENCES = "select number, sentence from calls.sentences order by number"
HAS = "select words @@ websearch_to_tsquery(configuration, %s) from calls.transcripts"


@pytest.fixture
async def mill(dsn: str) -> AsyncIterator[Mill]:
    async with Mill(dsn, migrate=True, schemas=[CALLS]) as mill:
        yield mill


@pytest.fixture
async def call(mill: Mill) -> UUID:
    id = uuid4()
    row = {"name": "call", "provider": "manual", "language": "en"}
    await CALLS.rows(mill, "add_call", id=id, tenant="acme", upload=uuid4(), upload_size=1, **row)
    return id


def said(*texts: str, language: str = "en") -> Transcript:
    segments = [segment(text, at, at + 0.9) for at, text in enumerate(texts)]
    return transcript(*segments, language=language)


async def found(mill: Mill, call: UUID, words: str) -> list[str]:
    moments = await moments_of(mill.as_tenant("acme"), [call], words)
    return [moment["text"] for moment in moments[call]]


async def test_sentences_are_found_by_the_stems_of_their_words(mill: Mill, call: UUID) -> None:
    await keep_words(mill, call, said("Our motors are loud.", "My name is Jack.", "Goodbye."))
    assert await found(mill, call, "motor jack") == ["Our motors are loud.", "My name is Jack."]
    assert await found(mill, call, '"name is jack"') == ["My name is Jack."]
    assert await moments_of(mill.as_tenant("another"), [call], "motor") == {}


@pytest.mark.parametrize("words", ["motors -jack", "motors -jack -bye", '-"my name" motors'])
async def test_words_that_must_not_occur_are_not_looked_for(
    mill: Mill, call: UUID, words: str
) -> None:
    await keep_words(mill, call, said("Our motors are loud.", "Good morning.", "Goodbye."))
    assert await found(mill, call, words) == ["Our motors are loud."]
    assert await found(mill, call, "-jack") == []


async def test_another_transcript_replaces_the_sentences_of_the_first(
    mill: Mill, call: UUID, sql: psycopg.Connection[Any]
) -> None:
    await keep_words(mill, call, said("One.", "Two.", "Three."))
    await keep_words(mill, call, said("Vier Motoren.", language="de-DE"))
    assert rows(sql, SENTENCES) == [(1, "Vier Motoren.")]
    assert await found(mill, call, "motor") == ["Vier Motoren."]


async def test_characters_that_postgres_cannot_store_are_left_out(
    mill: Mill, call: UUID, sql: psycopg.Connection[Any]
) -> None:
    await keep_words(mill, call, said("My na\x00me is\ud800 Jack."))
    assert rows(sql, SENTENCES) == [(1, "My name is Jack.")]
    assert one(sql, HAS, "jack") == (True,)


async def test_a_text_with_too_many_different_words_is_searched_in_its_beginning(
    mill: Mill, call: UUID, sql: psycopg.Connection[Any]
) -> None:
    """A tsvector has at most a megabyte, also for one sentence."""
    many = ",".join(f"w{number:x}" for number in range(200_000))
    await keep_words(mill, call, said(many, *many.split(",")[:1_000]))
    assert one(sql, HAS, "w0") == (True,)
    assert one(sql, HAS, "w30d3f") == (False,)
    assert len(rows(sql, SENTENCES)) > 1


def test_postgres_has_all_configurations(sql: psycopg.Connection[Any]) -> None:
    known = {name for (name,) in rows(sql, "select cfgname::text from pg_ts_config")}
    assert set(CONFIGURATIONS.values()) <= known
