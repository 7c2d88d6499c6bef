"""Files over HTTP: uploads, downloads, and the headers that make downloads safe."""

import asyncio
import hashlib
import socket
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from batchmill.service import create_app
from tests.library.tools import one, until
from tests.service.conftest import running
from tests.service.shop import shop_on
from tests.service.tools import Tenant, problem

MOST = 300_000
MIB = 1_048_576


async def test_an_uploaded_file_is_downloaded_unchanged(ada: Tenant) -> None:
    content = bytes(range(256)) * 1_000
    answer = await ada.client.put(
        "/v1/artifacts",
        params={"name": "data.pdf"},
        content=content,
        headers={"Content-Type": "application/pdf"},
    )
    file = answer.json()
    assert (answer.status_code, file["size"]) == (201, len(content))
    assert file["sha256"] == hashlib.sha256(content).hexdigest()
    assert (file["media_type"], file["kind"], file["downloads"]) == ("application/pdf", "input", 0)
    at = f"/v1/artifacts/{file['id']}"
    assert (await ada.client.get(at)).json() == file
    download = await ada.client.get(f"{at}/content")
    assert download.content == content
    assert download.headers["content-disposition"] == 'attachment; filename="data.pdf"'
    assert download.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in download.headers["content-security-policy"]
    assert (await ada.client.get(at)).json()["downloads"] == 1
    assert (await ada.client.delete(at)).status_code == 204
    assert problem(await ada.client.get(f"{at}/content")) == (404, "not_found")
    assert ada.has_nothing


async def test_a_form_content_type_is_replaced_by_the_type_of_the_file_name(ada: Tenant) -> None:
    """curl sends this content type if none is given."""
    answer = await ada.client.put(
        "/v1/artifacts",
        params={"name": "data.pdf"},
        content=b"%PDF-",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.json()["media_type"] == "application/pdf"


async def test_an_upload_to_a_full_disk_returns_507_and_leaves_nothing(
    dsn: str, disk: Path
) -> None:
    async with running(create_app(shop_on(dsn, disk / "files"))) as client:
        for size, status in ((8 * MIB, 507), (2 * MIB, 201)):
            answer = await client.put("/v1/artifacts?name=x", content=bytes(size))
            assert answer.status_code == status, answer.text
            left = [path for path in disk.rglob("*") if path.is_file()]
            assert len(left) == (status == 201)


async def test_a_range_of_a_file_can_be_downloaded(ada: Tenant) -> None:
    at = f"/v1/artifacts/{(await ada.file(b'0123456789'))['id']}/content"
    etag = (await ada.client.head(at)).headers["etag"]

    async def get(**headers: str) -> tuple[int, bytes, str | None]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await ada.client.get(at, headers=sent)
        return answer.status_code, answer.content, answer.headers.get("content-range")

    assert await get(Range="bytes=2-4") == (206, b"234", "bytes 2-4/10")
    assert await get(Range="bytes=-3") == (206, b"789", "bytes 7-9/10")
    assert await get(Range="bytes=8-") == (206, b"89", "bytes 8-9/10")
    assert await get(Range="bytes=8-99") == (206, b"89", "bytes 8-9/10")
    for whole in ("bytes=1-2,4-5", "lines=1-2", "bytes=x", "bytes=5-2", "bytes=-", "9" * 500):
        assert await get(Range=whole) == (200, b"0123456789", None)
    assert await get(Range="bytes=2-4", If_Range=etag) == (206, b"234", "bytes 2-4/10")
    assert await get(Range="bytes=2-4", If_Range='"old"') == (200, b"0123456789", None)
    assert await get(If_None_Match=etag) == (304, b"", None)
    beyond = await ada.client.get(at, headers={"Range": "bytes=10-"})
    assert problem(beyond) == (416, "range_not_satisfiable")
    assert beyond.headers["content-range"] == "bytes */10"


async def test_a_head_request_does_not_count_as_a_download(ada: Tenant) -> None:
    file = await ada.file(b"0123456789")
    answer = await ada.client.head(f"/v1/artifacts/{file['id']}/content")
    assert (answer.status_code, answer.headers["content-length"]) == (200, "10")
    assert answer.headers["accept-ranges"] == "bytes"
    assert (await ada.client.get(f"/v1/artifacts/{file['id']}")).json()["downloads"] == 0
    del ada.client.headers["Authorization"]
    assert (await ada.client.head(f"/v1/artifacts/{file['id']}/content")).status_code == 401


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/", "file"),
        ("...", "file"),
        ("a\r\nSet-Cookie: x=y", "aSet-Cookie_ x=y"),
        ('q"uo"te.txt', "q_uo_te.txt"),
        ("r\u202eexe.txt", "rexe.txt"),
        ("名前.txt", "名前.txt"),
        ("con.txt", "_con.txt"),
        ("😀" * 60 + ".txt", None),
    ],
)
async def test_file_names_are_made_safe(given: str, stored: str | None, ada: Tenant) -> None:
    file = await ada.file(name=given)
    if stored is not None:
        assert file["name"] == stored
    assert len(file["name"].encode()) <= 200
    answer = await ada.client.get(f"/v1/artifacts/{file['id']}/content")
    disposition = answer.headers["content-disposition"]
    assert disposition.startswith('attachment; filename="') and disposition.isascii()
    assert "set-cookie" not in answer.headers
    assert not [path for path in ada.files if "passwd" in path.name]


@pytest.mark.parametrize("media_type", ["text/html", "image/svg+xml", "application/xhtml+xml"])
async def test_files_that_a_browser_would_run_are_served_as_octet_streams(
    media_type: str, ada: Tenant
) -> None:
    answer = await ada.client.put(
        "/v1/artifacts",
        params={"name": "x.html"},
        content=b"<script>alert(1)</script>",
        headers={"Content-Type": media_type},
    )
    download = await ada.client.get(f"/v1/artifacts/{answer.json()['id']}/content")
    assert download.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", {}),
        ("?name=", {}),
        ("?name=" + "x" * 256, {}),
        ("?name=a", {"Content-Type": "nonsense"}),
        ("?name=a", {"Content-Type": "text/" + "x" * 100}),
    ],
)
async def test_an_upload_with_an_invalid_name_or_type_is_refused(
    query: str, headers: dict[str, str], ada: Tenant
) -> None:
    answer = await ada.client.put(f"/v1/artifacts{query}", content=b"text", headers=headers)
    assert answer.status_code == 422
    problem(answer)
    assert ada.has_nothing


@pytest.mark.parametrize("has_length", [True, False])
async def test_a_file_over_the_size_limit_is_refused(has_length: bool, ada: Tenant) -> None:
    async def chunks(size: int) -> AsyncIterator[bytes]:
        yield b"x" * size

    for size in (0, MOST + 1, MOST):
        content = b"x" * size if has_length else chunks(size)
        answer = await ada.client.put("/v1/artifacts", params={"name": "a"}, content=content)
        if size > MOST:
            assert problem(answer) == (413, "artifact_too_large")
        else:
            assert (answer.status_code, answer.json()["size"]) == (201, size)
    assert len(ada.files) == 2


FORM_HEAD = (
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nfirst\r\n'
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="b.txt"\r\n\r\n'
)


@pytest.mark.parametrize("abrupt", [True, False])
@pytest.mark.parametrize(
    ("line", "headers", "head"),
    [
        ("PUT /v1/artifacts?name=a", "Content-Length: 200000", b""),
        ("PUT /v1/artifacts?name=a", "Transfer-Encoding: chunked", b"30d40\r\n"),
        (
            "POST /v1/batches",
            "Content-Length: 200000\r\nContent-Type: multipart/form-data; boundary=b",
            FORM_HEAD,
        ),
    ],
    ids=["sized", "chunked", "form"],
)
async def test_an_upload_that_is_cut_off_leaves_nothing(
    line: str, headers: str, head: bytes, abrupt: bool, ada: Tenant
) -> None:
    url = ada.client.base_url
    with socket.create_connection((url.host, url.port)) as connection:
        key = ada.client.headers["Authorization"]
        request = (
            f"{line} HTTP/1.1\r\nHost: {url.host}\r\nAuthorization: {key}\r\n{headers}\r\n\r\n"
        )
        connection.sendall(request.encode() + head + b"x" * 100_000)
        writing = "select count(*) from batchmill.artifacts where tenant = %s and state = 'writing'"
        await until(lambda: one(ada.service.sql, writing, ada.name) == (1,))
        if abrupt:
            reset = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    await until(lambda: ada.has_nothing)


async def test_a_file_in_use_cannot_be_deleted_or_used_by_another_tenant(
    ada: Tenant, bob: Tenant
) -> None:
    file = await ada.file()
    at = f"/v1/artifacts/{file['id']}"
    payload = {"file": {"artifact": file["id"]}}
    batch = await ada.batch("shout", [payload], delay=600)
    assert problem(await ada.client.delete(at)) == (409, "conflict")
    stolen = await bob.client.post("/v1/batches", json={"task": "shout", "items": [payload]})
    assert stolen.status_code in (404, 422)
    problem(stolen)
    assert bob.has_nothing
    await ada.client.post(f"{batch['links']['self']}/cancel")
    assert (await ada.client.delete(at)).status_code == 204


async def test_files_of_a_batch_are_listed_and_deleted_with_it(ada: Tenant) -> None:
    file = await ada.file(b"ann")
    batch = await ada.batch("shout", [{"file": {"artifact": file["id"]}}])
    await ada.finished(batch)
    at = batch["links"]["self"]
    listed = (await ada.client.get(f"{at}/artifacts")).json()["artifacts"]
    assert {(each["kind"], each["name"]) for each in listed} == {
        ("input", "a.txt"),
        ("output", "loud.txt"),
    }
    archive = await ada.client.get(f"{at}/archive")
    assert archive.headers["content-type"] == "application/zip"
    assert archive.headers["x-content-type-options"] == "nosniff"
    assert f'filename="{batch["id"]}.zip"' in archive.headers["content-disposition"]
    assert (await ada.client.delete(at)).status_code == 204
    assert problem(await ada.client.get(f"/v1/artifacts/{file['id']}")) == (404, "not_found")


async def test_files_can_be_uploaded_concurrently(ada: Tenant) -> None:
    files = await asyncio.gather(*(ada.file(b"%d" % n * 10_000, f"{n}.txt") for n in range(10)))
    for n, file in enumerate(files):
        download = await ada.client.get(f"/v1/artifacts/{file['id']}/content")
        assert download.content == b"%d" % n * 10_000
