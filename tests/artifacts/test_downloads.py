"""How files are served: headers that stop a browser from running them, and byte ranges."""

import re
from datetime import UTC, datetime
from urllib.parse import unquote
from uuid import uuid4

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from batchmill import ArtifactRecord, RangeNotSatisfiable
from batchmill.artifacts.headers import SAFE_TYPES, disposition
from batchmill.domain.artifact import ArtifactKind, ArtifactState, safe_name
from batchmill.service.download import archive_headers, download_headers, parse_range

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def record(name: str = "a.txt", media_type: str = "text/plain", size: int = 10) -> ArtifactRecord:
    return ArtifactRecord(
        id=uuid4(),
        tenant="ada",
        kind=ArtifactKind.OUTPUT,
        state=ArtifactState.KEPT,
        batch_id=None,
        job_id=1,
        name=name,
        media_type=media_type,
        size=size,
        sha256="ab" * 32,
        storage_key="k",
        downloads=0,
        created_at=NOW,
        expires_at=NOW,
    )


def test_a_file_is_served_as_an_attachment_without_sniffing() -> None:
    headers = download_headers(record())
    assert headers["Content-Disposition"] == 'attachment; filename="a.txt"'
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert headers["Content-Length"] == "10"
    assert headers["ETag"] == f'"{"ab" * 32}"'
    assert headers["Accept-Ranges"] == "bytes"
    assert "Content-Range" not in headers


def test_a_partial_response_has_a_content_range() -> None:
    headers = download_headers(record(), range(2, 5))
    assert (headers["Content-Length"], headers["Content-Range"]) == ("3", "bytes 2-4/10")


@pytest.mark.parametrize(
    "media_type", ["text/html", "image/svg+xml", "text/xml", "text/javascript", "a/b"]
)
def test_an_unsafe_type_is_served_as_octet_stream(media_type: str) -> None:
    assert download_headers(record("x", media_type))["Content-Type"] == "application/octet-stream"
    assert media_type not in SAFE_TYPES


def test_an_archive_is_served_as_an_attachment() -> None:
    headers = archive_headers("batch.zip")
    assert headers["Content-Type"] == "application/zip"
    assert headers["Content-Disposition"] == 'attachment; filename="batch.zip"'


@given(st.text())
def test_any_name_round_trips_through_content_disposition(name: str) -> None:
    header = disposition(name)
    assert header.isascii() and header.isprintable()
    match = re.fullmatch(
        r"attachment; filename=\"([^\"\\]*)\"(?:; filename\*=UTF-8''(\S+))?", header
    )
    assert match is not None
    plain, extended = match.groups()
    assert (unquote(extended) if extended else plain) == safe_name(name)


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("bytes=0-0", range(1)),
        ("bytes=2-4", range(2, 5)),
        ("bytes=2-", range(2, 10)),
        ("bytes=2-99", range(2, 10)),
        ("bytes=-3", range(7, 10)),
        ("bytes=-99", range(10)),
        ("Bytes= 1 - 2 ", range(1, 3)),
    ],
)
def test_a_range_is_parsed(header: str, part: range) -> None:
    assert parse_range(header, 10) == part


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "bytes=",
        "bytes=-",
        "bytes=5-2",
        "bytes=0-1,3-4",
        "items=0-1",
        "bytes=a-b",
        "bytes=+1-2",
        "bytes=1",
        "bytes=" + "9" * 30 + "-",
        "bytes=١-٢",
    ],
)
def test_anything_but_a_single_valid_range_is_ignored(header: str | None) -> None:
    assert parse_range(header, 10) is None


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=99-100", "bytes=-0"])
def test_a_range_without_bytes_is_refused_with_the_size(header: str) -> None:
    with pytest.raises(RangeNotSatisfiable) as refused:
        parse_range(header, 10)
    assert refused.value.size == 10


def test_a_range_of_another_version_is_ignored() -> None:
    assert parse_range("bytes=1-2", 10, etag='"new"', if_range='"old"') is None
    assert parse_range("bytes=1-2", 10, etag='"new"', if_range='"new"') == range(1, 3)


@given(
    st.integers(0, 50),
    st.integers(0, 60),
    st.integers(0, 60),
    st.sampled_from(["{0}-{1}", "{0}-", "-{1}"]),
)
def test_a_range_selects_the_same_bytes_as_a_slice(
    size: int, first: int, last: int, form: str
) -> None:
    content = bytes(range(size))
    assume(form != "{0}-{1}" or first <= last)
    expected = {
        "{0}-{1}": content[first : last + 1],
        "{0}-": content[first:],
        "-{1}": content[-last:] if last else b"",
    }[form]
    try:
        part = parse_range(f"bytes={form.format(first, last)}", size)
    except RangeNotSatisfiable:
        assert expected == b""
    else:
        assert part is not None and content[part.start : part.stop] == expected != b""


@given(st.text(max_size=30), st.integers(0, 10**12))
def test_no_header_crashes_the_parser(header: str, size: int) -> None:
    for text in (header, f"bytes={header}"):
        try:
            part = parse_range(text, size)
        except RangeNotSatisfiable:
            continue
        assert part is None or 0 <= part.start < part.stop <= size
