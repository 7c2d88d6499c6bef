import gzip
import io
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill.fetch.media import sniff


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", "b")
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return file.getvalue()


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"%PDF-1.7\n%\xe2\xe3", "application/pdf"),
        (zipped(), "application/zip"),
        (tarred()[:512], "application/x-tar"),
        (gzip.compress(b"x", mtime=0), "application/gzip"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF89a\1\0", "image/gif"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
        (b"\0\0\0\x20ftypisom", "video/mp4"),
        (b"\0\0\0\x20ftypheic", "image/heic"),
        (b"BM\x36\0\0\0", "image/bmp"),
        (b"BMW makes cars", "text/plain"),
        (b"MZ\x90\0\3", "application/vnd.microsoft.portable-executable"),
        (b"<!DOCTYPE html><html>", "text/html"),
        (b"\xef\xbb\xbf\n  <html lang=en>", "text/html"),
        (b"<h1>Hi</h1>", "text/html"),
        (b"<?xml version='1.0'?><feed/>", "application/xml"),
        (b"<?xml version='1.0'?>\n<svg xmlns='x'>", "image/svg+xml"),
        (b"<svg>", "image/svg+xml"),
        (b'{"a": 1', "application/json"),
        (b"[1, 2", "application/json"),
        (b"[]", "application/json"),
        (b"{ not json }", "text/plain"),
        (b"[section]\nname = value", "text/plain"),
        ("Grüße, 世界".encode(), "text/plain"),
        ("Grüße".encode("latin-1"), "text/plain"),
        (b"\xff\xfeh\0i\0", "text/plain"),
        (b"a,b\n1,2\n", "text/plain"),
        (b"", "application/octet-stream"),
        (b"\0\1\2\3", "application/octet-stream"),
    ],
)
def test_sniff_detects_the_media_type(head: bytes, kind: str):
    assert sniff(head) == kind


@given(st.binary(max_size=512))
def test_sniff_returns_a_media_type_for_any_bytes(head: bytes):
    assert "/" in sniff(head)
