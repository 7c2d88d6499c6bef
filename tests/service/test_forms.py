"""Forms with files: valid and invalid ones, in chunks of any size."""

import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from batchmill.domain.payload import LIMIT
from tests.service.conftest import Served
from tests.service.tools import Tenant, problem

TYPE = {"Content-Type": "multipart/form-data; boundary=b"}


def field(name: str, text: bytes | str) -> bytes:
    value = text.encode() if isinstance(text, str) else text
    return (
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value + b"\r\n"
    )


def file(name: str, content: bytes, part: str = "file", more: str = "") -> bytes:
    head = f'--b\r\nContent-Disposition: form-data; name="{part}"; filename="{name}"\r\n{more}\r\n'
    return head.encode() + content + b"\r\n"


TASK, A, END = field("task", "shout"), file("a.txt", b"ann"), b"--b--\r\n"


async def post(tenant: Tenant, *parts: bytes, **headers: str) -> httpx.Response:
    sent = TYPE | {name.replace("_", "-"): value for name, value in headers.items()}
    return await tenant.client.post("/v1/batches", content=b"".join(parts), headers=sent)


async def outputs(tenant: Tenant, answer: httpx.Response) -> list[str]:
    """Waits for the jobs of a form. Returns the texts that they wrote."""
    assert answer.status_code == 202, answer.text
    await tenant.finished(answer.json())
    results = (await tenant.client.get(answer.json()["links"]["results"])).json()["results"]
    contents = []
    for each in results:
        at = f"/v1/artifacts/{each['result']['artifact']}/content"
        contents.append((await tenant.client.get(at)).text)
    return contents


async def test_each_file_creates_a_job_for_any_order_of_the_parts(ada: Tenant) -> None:
    note = field("payload", '{"note": "all"}')
    for parts in itertools.permutations([TASK, A, note]):
        answer = await post(ada, *parts, file("b.txt", b"bob"), END)
        assert await outputs(ada, answer) == ["ANN", "BOB"]
        job = (await ada.client.get(answer.json()["links"]["jobs"])).json()["jobs"][0]["id"]
        assert (await ada.client.get(f"/v1/jobs/{job}")).json()["payload"]["note"] == "all"


async def test_a_file_input_without_a_file_is_ignored(ada: Tenant) -> None:
    assert await outputs(ada, await post(ada, TASK, file("", b""), A, END)) == ["ANN"]
    assert await outputs(ada, await post(ada, TASK, file("", b"bob"), END)) == ["BOB"]
    assert problem(await post(ada, TASK, file("", b""), END)) == (400, "bad_request")


async def test_extended_file_names_and_content_types_in_any_case_are_accepted(ada: Tenant) -> None:
    named = A.replace(b'filename="a.txt"', b"filename*=UTF-8''na%C3%AFve.txt")
    answer = await post(ada, TASK, named, END, Content_Type="Multipart/Form-Data; boundary=b")
    assert await outputs(ada, answer) == ["ANN"]
    at = f"{answer.json()['links']['self']}/artifacts?kind=input"
    (kept,) = (await ada.client.get(at)).json()["artifacts"]
    assert kept["name"] == "naïve.txt"


async def test_files_with_the_same_name_and_empty_files_are_accepted(ada: Tenant) -> None:
    answer = await post(ada, TASK, A, A, file("a.txt", b""), END)
    assert await outputs(ada, answer) == ["ANN", "ANN", ""]
    archive = await ada.client.get(answer.json()["links"]["archive"])
    assert archive.content.startswith(b"PK")


async def test_options_are_read_from_text_fields(ada: Tenant) -> None:
    options = {"limit": "2", "priority": "-5", "labels": '{"of": "ada"}', "delay": "600"}
    fields = [field(name, text) for name, text in options.items()]
    answer = await post(ada, TASK, A, *fields, END)
    batch = answer.json()
    assert (answer.status_code, batch["labels"]) == (202, {"of": "ada"})
    job = (await ada.client.get(batch["links"]["jobs"])).json()["jobs"][0]
    assert (job["priority"], job["state"]) == (-5, "scheduled")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 61])
async def test_a_form_can_arrive_in_chunks_of_any_size(size: int, ada: Tenant) -> None:
    tricky = b"\r\n--a\r\n--\r\r\n-\r\n--"
    body = TASK + file("a.txt", tricky) + file("b.txt", b"\r\n") + END

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(body), size):
            yield body[at : at + size]

    answer = await ada.client.post("/v1/batches", content=chunks(), headers=TYPE)
    assert await outputs(ada, answer) == [tricky.upper().decode(), "\r\n"]


async def test_many_small_parts_in_one_chunk_are_accepted(ada: Tenant) -> None:
    files = [file(f"{n:0190}.txt", b"%d" % n) for n in range(59)]
    answer = await post(ada, TASK, *files, END)
    assert (answer.status_code, answer.json()["total"]) == (202, 59)


async def test_a_form_with_the_same_idempotency_key_returns_the_same_batch(ada: Tenant) -> None:
    first = await post(ada, TASK, A, END, Idempotency_Key="once")
    again = await post(ada, TASK, A, END, Idempotency_Key="once")
    assert first.json()["id"] == again.json()["id"]
    other = await post(ada, TASK, file("a.txt", b"eve"), END, Idempotency_Key="once")
    assert problem(other) == (422, "idempotency_conflict")
    await ada.finished(first.json())
    assert len(ada.files) == 2


BAD: dict[str, tuple[list[bytes], int, str]] = {
    "empty": ([b""], 400, "bad_request"),
    "not a form": ([b"hello"], 400, "bad_request"),
    "JSON": ([b'{"task": "shout"}'], 400, "bad_request"),
    "text before the first part": ([b"hello\r\n", TASK, A, END], 400, "bad_request"),
    "another boundary": ([TASK.replace(b"--b", b"--c"), END], 400, "bad_request"),
    "no final boundary": ([TASK, A], 400, "bad_request"),
    "truncated in a header": ([TASK, A[:30]], 400, "bad_request"),
    "no file": ([TASK, END], 400, "bad_request"),
    "no task": ([A, END], 422, "invalid_request"),
    "an unknown task": ([field("task", "nothing"), A, END], 422, "unknown_task"),
    "an unknown field": ([TASK, A, field("colour", "red"), END], 422, "invalid_request"),
    "items": ([TASK, A, field("items", "[1]"), END], 422, "invalid_request"),
    "an invalid option": ([TASK, A, field("limit", "0"), END], 422, "invalid_request"),
    "a duplicate field": ([TASK, TASK, A, END], 400, "bad_request"),
    "a payload that is not JSON": ([TASK, A, field("payload", "{"), END], 400, "bad_request"),
    "a payload that is not an object": ([TASK, A, field("payload", "[]"), END], 400, "bad_request"),
    "NaN": ([TASK, A, field("payload", '{"note": NaN}'), END], 400, "bad_request"),
    "a payload of the wrong type": (
        [TASK, A, field("payload", '{"note": 1}'), END], 422, "invalid_payload"),
    "labels that are not JSON": ([TASK, A, field("labels", '{"a"'), END], 400, "bad_request"),
    "a field that is not UTF-8": ([field("task", b"\xff"), A, END], 400, "bad_request"),
    "NUL": ([field("task", b"sh\0out"), A, END], 400, "bad_request"),
    "NUL in a name": ([TASK, file("a.txt", b"ann", "fi\0le"), END], 400, "bad_request"),
    "an unknown file field": ([TASK, file("a.txt", b"ann", "data"), END], 422, "invalid_payload"),
    "no disposition": ([TASK, A, b"--b\r\nX: y\r\n\r\nz\r\n", END], 400, "bad_request"),
    "no headers": ([TASK, A, b"--b\r\n\r\nz\r\n", END], 400, "bad_request"),
    "no name": (
        [TASK, A, b"--b\r\nContent-Disposition: form-data\r\n\r\nz\r\n", END], 400, "bad_request"),
    "an attachment": (
        [TASK, A, b'--b\r\nContent-Disposition: attachment; name="x"\r\n\r\nz\r\n', END],
        400, "bad_request"),
    "a huge header": (
        [TASK, A, file("b", b"", more="X: " + "y" * 9_000 + "\r\n"), END], 400, "bad_request"),
    "a huge name": ([TASK, A, file("b" * 9_000, b""), END], 400, "bad_request"),
    "many headers": (
        [TASK, A, file("b", b"", more="".join(f"X{n}: y\r\n" for n in range(50))), END],
        400, "bad_request"),
    "an invalid media type": (
        [TASK, A, file("b", b"", more="Content-Type: nonsense\r\n"), END], 422, "invalid_input"),
    "too many parts": ([TASK, A, *[field(f"f{n}", "") for n in range(60)], END], 413, "too_large"),
    "a field that is too large": ([TASK, A, field("payload", "x" * 200_001), END], 413, "too_large"),
    "options that are too large": (
        [TASK, A, field("limit", "x" * 70_000), field("labels", "x" * 70_000), END],
        413, "too_large"),
    "a file that is too large": (
        [TASK, A, file("b.txt", b"x" * 300_001), END], 413, "artifact_too_large"),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "status", "code"), BAD.values(), ids=BAD)
async def test_an_invalid_form_is_refused_and_leaves_nothing(
    parts: list[bytes], status: int, code: str, ada: Tenant
) -> None:
    assert problem(await post(ada, *parts)) == (status, code)
    assert ada.has_nothing


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=" + "b" * 300,
     "multipart/mixed; boundary=b", "multipart/", 'multipart/form-data; boundary="', "multipart/\xe9"],
)  # fmt: skip
async def test_a_form_with_an_invalid_content_type_is_refused(
    content_type: str, ada: Tenant
) -> None:
    headers: Any = {b"Content-Type": content_type.encode("latin-1")}
    answer = await ada.client.post("/v1/batches", content=TASK + A + END, headers=headers)
    assert problem(answer) == (400, "bad_request")
    assert ada.has_nothing


async def test_the_payload_field_is_limited_to_twice_the_payload_limit(served: Served) -> None:
    async with served() as client:
        for size, code in ((2 * LIMIT - 20, "payload_too_large"), (2 * LIMIT, "too_large")):
            sent = TASK + A + field("payload", '{"note": "' + "x" * size + '"}') + END
            answer = await client.post("/v1/batches", content=sent, headers=TYPE)
            assert problem(answer) == (413, code)


async def test_fields_can_be_longer_than_a_block(ada: Tenant) -> None:
    labels = json.dumps({str(n): "x" * 400 for n in range(30)})
    note = json.dumps({"note": "x" * 20_000, "numbers": list(range(5_000))})
    answer = await post(ada, TASK, field("payload", note), field("labels", labels), A, A, END)
    assert await outputs(ada, answer) == ["ANN", "ANN"]


async def test_file_names_are_made_safe(ada: Tenant) -> None:
    files = [file(name, b"x") for name in ("../../x", "C:\\temp\\y.txt", "", "\xe9.txt", "ключ")]
    answer = await post(ada, TASK, *files, END)
    listed = (await ada.client.get(f"{answer.json()['links']['self']}/artifacts")).json()
    names = {each["name"] for each in listed["artifacts"] if each["kind"] == "input"}
    assert names == {"x", "y.txt", "file", "é.txt", "ключ"}
