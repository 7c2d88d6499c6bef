"""File names and media types: what users provide, and what the server stores."""

import unicodedata
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from batchmill import Artifact, InvalidInput, NotFound
from batchmill.domain.artifact import artifact_id, checked_type, safe_name
from batchmill.domain.manifest import Names
from batchmill.domain.payload import Codec

NASTY = [
    "..",
    "/",
    "\\",
    "con",
    ".txt",
    " ",
    ".",
    "\0",
    "\u202e",
    "\ud800",
    "ß",
    "é",
    "日本",
    "a" * 90,
    "?*",
]
names = st.one_of(st.text(), st.lists(st.sampled_from(NASTY), max_size=6).map("".join))
DEVICES = {"con", "prn", "aux", "nul", *(f"{p}{n}" for p in ("com", "lpt") for n in range(10))}


@given(names)
def test_a_safe_name_is_valid_on_every_system(name: str) -> None:
    safe = safe_name(name)
    assert 1 <= len(safe.encode()) <= 200
    assert not set(safe) & set('/\\<>:"|?*')
    assert all(unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in safe)
    assert safe not in (".", "..") and safe[-1] not in ". "
    assert safe.partition(".")[0].lower() not in DEVICES


@given(names)
def test_safe_name_is_idempotent(name: str) -> None:
    assert safe_name(safe_name(name)) == safe_name(name)


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("Übersicht 2026.pdf", "Übersicht 2026.pdf"),
        ("/etc/passwd", "passwd"),
        (r"C:\temp\a.txt", "a.txt"),
        ("../../..", "file"),
        ("", "file"),
        ("CON.txt", "_CON.txt"),
        ("nul .tar.gz", "_nul .tar.gz"),
        ("fdp\u202etxt.exe", "fdptxt.exe"),
        ("x" * 300 + ".pdf", "x" * 196 + ".pdf"),
    ],
)
def test_safe_name_returns_the_expected_name(given: str, safe: str) -> None:
    assert safe_name(given) == safe


@given(st.lists(names, max_size=40))
def test_names_in_an_archive_are_distinct_and_safe(given: list[str]) -> None:
    taken = Names("manifest.json")
    made = [taken.take(name) for name in given]
    assert len({name.casefold() for name in made} | {"manifest.json"}) == len(made) + 1
    assert all(safe_name(name) == name for name in made)


def test_duplicate_names_are_numbered_before_their_suffix() -> None:
    taken = Names("manifest.json")
    wishes = ["report.pdf", "Report.PDF", "report.pdf", "manifest.json", "report (2).pdf"]
    assert [taken.take(name) for name in wishes] == [
        "report.pdf",
        "Report (2).PDF",
        "report (3).pdf",
        "manifest (2).json",
        "report (2) (2).pdf",
    ]


def test_ten_thousand_equal_names_are_numbered() -> None:
    taken = Names()
    assert [taken.take("a.txt") for _ in range(10_000)][-1] == "a (10000).txt"


@pytest.mark.parametrize(
    ("given", "name", "expected"),
    [
        (None, "a.pdf", "application/pdf"),
        (None, "a.unheard-of", "application/octet-stream"),
        ("Text/HTML; charset=x", "a", "text/html"),
        ("application/vnd.api+json", "a", "application/vnd.api+json"),
    ],
)
def test_a_media_type_is_the_given_one_or_guessed_from_the_name(
    given: str | None, name: str, expected: str
) -> None:
    assert checked_type(given, name) == expected


@pytest.mark.parametrize("given", ["", "text", "text/", "a/b\r\nX: y", "a b/c", "x/" + "y" * 80])
def test_an_invalid_media_type_is_refused(given: str) -> None:
    with pytest.raises(InvalidInput):
        checked_type(given, "a")


def test_a_reference_is_plain_json_in_a_typed_payload() -> None:
    class Sheet(BaseModel):
        pdf: Artifact
        more: list[Artifact] = []

    id = uuid4()
    codec = Codec(Sheet)
    text = codec.dump(Sheet(pdf=Artifact(id, "a.pdf")))
    assert f'"artifact":"{id}","name":"a.pdf"' in text
    assert codec.load(text).pdf == Artifact(id, "a.pdf")
    assert codec.load(f'{{"pdf": {{"artifact": "{id}"}}}}').pdf.artifact == id


@pytest.mark.parametrize("given", ["", "x", "6a3f9e0c", None, 7])
def test_an_invalid_artifact_id_is_not_found(given: Any) -> None:
    with pytest.raises(NotFound):
        artifact_id(given)
