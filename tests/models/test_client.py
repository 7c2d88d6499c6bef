"""The model client, against a real server that sends exactly the bytes of the test."""

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from typing import Any

import pytest
from pydantic import BaseModel, Field

from batchmill import (
    InvalidInput,
    Job,
    Mill,
    ModelAnswerTooLong,
    ModelBadAnswer,
    ModelClient,
    ModelDeclined,
    ModelError,
    ModelImage,
    ModelTooSlow,
    ModelUnreachable,
    Retry,
    Transient,
)
from batchmill.domain.failure import Failure, classify
from batchmill.models.question import OutputMode
from tests.fetch.site import Answer, Site, answer

PATH = "/v1/chat/completions"
KEY = "sk-very-secret"
NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Invoice(BaseModel):
    number: int = Field(alias="invoiceNumber")
    lines: list[str] = []


class Recorded(dict[str, int]):
    """Records like a job."""

    def use(self, name: str, amount: int) -> None:
        self[name] = self.get(name, 0) + amount


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as site:
        yield site


def client(site: Site, *, api_key: str | None = KEY, **options: Any) -> ModelClient:
    return ModelClient(site.url("/v1/"), "small", api_key=api_key, **options)


def completion(
    content: str | None = '{"invoiceNumber": 7}', usage: Any = None, **choice: Any
) -> bytes:
    message = {"role": "assistant", "content": content} | choice.pop("message", {})
    body = {"choices": [{"message": message, **choice}], "usage": usage}
    return answer(json.dumps(body).encode(), content_type="application/json")


async def ask(site: Site, page: bytes | Answer, **options: Any) -> Any:
    site.pages[PATH] = page
    return await client(site, **options).ask(Invoice, "Read this.")


async def failure_of(site: Site, page: bytes | Answer, **options: Any) -> Failure:
    with pytest.raises(ModelError) as raised:
        await ask(site, page, **options)
    failure = classify(raised.value, now=NOW)
    assert KEY not in repr(raised.value) + failure.message + failure.detail
    return failure


# Questions and answers


async def test_an_answer_is_validated_and_its_tokens_are_recorded(site: Site) -> None:
    site.pages[PATH] = completion(usage={"prompt_tokens": 31, "completion_tokens": 5})
    recorded = Recorded()
    found = await client(site).ask(Invoice, "Read this.", job=recorded)
    assert (found.value.number, found.prompt_tokens, found.completion_tokens) == (7, 31, 5)
    assert recorded == {"prompt_tokens": 31, "completion_tokens": 5}
    assert f"authorization: bearer {KEY}" in site.requests[0].lower()


async def test_a_question_has_instructions_texts_images_and_options(site: Site) -> None:
    site.pages[PATH] = completion()
    model = client(site, options={"temperature": 0})
    image = ModelImage(b"\x89PNG", "image/png")
    await model.ask(Invoice, "First page:", image, instructions="You read invoices.")
    question = json.loads(site.bodies[0])
    assert (question["model"], question["temperature"]) == ("small", 0)
    system, user = question["messages"]
    assert system == {"role": "system", "content": "You read invoices."}
    assert user["content"] == [
        {"type": "text", "text": "First page:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
    ]
    schema = question["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["invoiceNumber"]


@pytest.mark.parametrize(
    ("output", "response_format"),
    [("json_object", {"type": "json_object"}), ("text", None)],
)
async def test_an_endpoint_without_schemas_gets_the_schema_as_text(
    site: Site, output: OutputMode, response_format: Any
) -> None:
    fenced = '```json\n{"invoiceNumber": 8}\n```'
    assert (await ask(site, completion(fenced), output=output)).value.number == 8
    question = json.loads(site.bodies[0])
    assert question.get("response_format") == response_format
    assert "invoiceNumber" in question["messages"][0]["content"]
    assert question["messages"][1]["content"] == "Read this."


async def test_a_text_is_asked_without_a_schema_and_its_tokens_are_recorded(site: Site) -> None:
    usage = {"prompt_tokens": 31, "completion_tokens": 5}
    site.pages[PATH] = completion(" Try **Acme**.\n", usage)
    recorded = Recorded()
    found = await client(site, options={"temperature": 0}).text("Where?", job=recorded)
    assert (found.value, found.is_cut) == ("Try **Acme**.", False)
    assert recorded == usage
    assert json.loads(site.bodies[0]) == {
        "model": "small",
        "messages": [{"role": "user", "content": "Where?"}],
        "temperature": 0,
    }


async def test_a_text_may_have_instructions(site: Site) -> None:
    site.pages[PATH] = completion("Yes.")
    await client(site).text("Where?", instructions="Be brief.")
    system, user = json.loads(site.bodies[0])["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert user["content"] == "Where?"


async def test_a_text_that_reached_the_limit_of_tokens_is_cut(site: Site) -> None:
    site.pages[PATH] = completion("Try Acme and", finish_reason="length")
    found = await client(site).text("Where?")
    assert (found.value, found.is_cut) == ("Try Acme and", True)


@pytest.mark.parametrize(
    ("page", "error"),
    [
        (answer(b'{"choices": []}'), ModelBadAnswer),
        (completion(None), ModelBadAnswer),
        (completion(" \n"), ModelBadAnswer),
        (completion("", finish_reason="length"), ModelBadAnswer),
        (completion("No.", message={"refusal": "I will not."}), ModelDeclined),
        (completion("No.", finish_reason="content_filter"), ModelDeclined),
    ],
)
async def test_a_text_that_is_no_answer_is_an_error(
    site: Site, page: bytes, error: type[ModelError]
) -> None:
    site.pages[PATH] = page
    with pytest.raises(error):
        await client(site).text("Where?")


async def test_an_endpoint_may_need_no_key(site: Site) -> None:
    await ask(site, completion(), api_key=None)
    assert "authorization" not in site.requests[0].lower()


@pytest.mark.parametrize(
    "usage", [None, [], "many", {}, {"prompt_tokens": "3", "completion_tokens": -1}]
)
async def test_an_endpoint_that_counts_no_tokens_records_none(site: Site, usage: Any) -> None:
    site.pages[PATH] = completion(usage=usage)
    recorded = Recorded()
    found = await client(site).ask(Invoice, "Read this.", job=recorded)
    assert (found.prompt_tokens, found.completion_tokens, recorded) == (0, 0, {})


# Answers that cannot be used


@pytest.mark.parametrize(
    "page",
    [
        answer(b""),
        answer(b"<html>"),
        answer(b"[]"),
        answer(b'{"choices": []}'),
        answer(b'{"choices": [{"message": "hello"}]}'),
        answer(b"\xff\xfe"),
        answer(b"not gzip", content_encoding="gzip"),
        completion(None),
        completion("Sorry, I cannot read this."),
        completion('{"invoiceNumber": "seven"}'),
        completion('{"number": 7}'),
    ],
)
async def test_an_answer_in_another_format_is_retried(site: Site, page: bytes) -> None:
    failure = await failure_of(site, page)
    assert (failure.code, failure.transient) == ("model_bad_answer", True)
    assert failure.message == "The AI model's answer does not have the requested format."


@pytest.mark.parametrize("text", ["```json%s", "```%sx", "%s```json%s{", "```%s```%s```", "``%s``"])
@pytest.mark.timeout(60)
async def test_an_answer_with_very_much_white_space_is_read_at_once(site: Site, text: str) -> None:
    """A slow search would hold the GIL, and the heartbeat of the worker would stop."""
    failure = await failure_of(site, completion(text.replace("%s", " " * 1_000_000)))
    assert failure.code == "model_bad_answer"


@pytest.mark.parametrize(
    "text", ["```%s```", "```json%s```", " \n```json\n\n%s\n\n``` \n", " %s\n"]
)
async def test_a_block_of_markdown_around_an_answer_is_accepted(site: Site, text: str) -> None:
    sent = '{"invoiceNumber": 8, "lines": ["```"]}'
    assert (await ask(site, completion(text % sent))).value.lines == ["```"]


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "identity, gzip", "br", "unknown"])
async def test_an_encoded_answer_is_refused_because_its_size_is_unknown(
    site: Site, encoding: str
) -> None:
    body = gzip.compress(completion().partition(b"\r\n\r\n")[2])
    failure = await failure_of(site, answer(body, content_encoding=encoding))
    assert (failure.code, failure.transient) == ("model_bad_answer", True)
    assert "encoded body" in failure.detail


async def test_an_answer_with_the_encoding_identity_is_accepted(site: Site) -> None:
    body = completion().partition(b"\r\n\r\n")[2]
    assert (await ask(site, answer(body, content_encoding="Identity"))).value.number == 7


async def test_tokens_of_an_answer_that_is_not_valid_are_recorded_too(site: Site) -> None:
    site.pages[PATH] = completion("Sorry.", {"prompt_tokens": 31, "completion_tokens": 5})
    recorded = Recorded()
    with pytest.raises(ModelBadAnswer):
        await client(site).ask(Invoice, "Read this.", job=recorded)
    assert recorded == {"prompt_tokens": 31, "completion_tokens": 5}


async def test_an_answer_that_reached_the_limit_of_tokens_is_not_retried(site: Site) -> None:
    failure = await failure_of(site, completion('{"invoiceNum', finish_reason="length"))
    assert (failure.code, failure.transient) == (ModelAnswerTooLong.code, False)


@pytest.mark.parametrize(
    "choice", [{"message": {"refusal": "I will not."}}, {"finish_reason": "content_filter"}]
)
async def test_a_model_that_declines_is_not_asked_again(site: Site, choice: dict[str, Any]) -> None:
    failure = await failure_of(site, completion(None, **choice))
    assert (failure.code, failure.transient) == (ModelDeclined.code, False)


async def test_a_huge_answer_is_not_read_to_its_end(site: Site) -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(answer(content_length=str(1 << 40)))
        while not writer.is_closing():
            writer.write(b" " * 65_536)
            await writer.drain()
            sent += 65_536

    failure = await failure_of(site, endless, size=1_000_000)
    assert (failure.code, failure.transient) == (ModelAnswerTooLong.code, False)
    await asyncio.wait_for(site.disconnected.wait(), 10)
    # The rest is in the buffers of both sockets.
    assert sent < 50_000_000


async def test_an_answer_may_have_as_many_bytes_as_the_limit(site: Site) -> None:
    page = completion()
    length = len(page.partition(b"\r\n\r\n")[2])
    assert (await ask(site, page, size=length)).value.number == 7
    with pytest.raises(ModelAnswerTooLong):
        await ask(site, page, size=length - 1)


# Errors of the endpoint


@pytest.mark.parametrize(
    ("status", "code", "transient"),
    [
        (429, "rate_limited", True),
        (500, "unavailable", True),
        (503, "unavailable", True),
        (504, "timeout", True),
        (529, "overloaded", True),
        (400, "invalid_input", False),
        (401, "not_allowed", False),
        (404, "not_found", False),
        (418, "rejected", False),
        (302, "rejected", False),
    ],
)
async def test_a_status_has_the_code_and_kind_of_any_other_http_error(
    site: Site, status: int, code: str, transient: bool
) -> None:
    failure = await failure_of(site, answer(b"{}", status=status, location="/elsewhere"))
    assert (failure.code, failure.transient) == (code, transient)
    assert len(site.requests) == 1, "The client does not retry or follow redirects."


@pytest.mark.parametrize("value", ["90", format_datetime(NOW + timedelta(seconds=90), usegmt=True)])
@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_read_in_seconds_or_as_a_date(
    site: Site, status: int, value: str
) -> None:
    failure = await failure_of(site, answer(status=status, retry_after=value))
    assert failure.retry_after == 90


async def test_operators_see_the_beginning_of_an_error_without_the_key(site: Site) -> None:
    told = f"response_format is not supported; you sent {KEY}".encode()
    failure = await failure_of(site, answer(told + b"x" * 100_000, status=400))
    assert "response_format is not supported; you sent [key]" in failure.detail
    assert len(failure.detail) < 8_000
    assert failure.message == "The input is not valid."


async def test_a_body_about_the_key_is_not_shown(site: Site) -> None:
    """Endpoints repeat parts of a wrong key."""
    failure = await failure_of(site, answer(b"Incorrect API key: sk-ve***ret", status=401))
    assert "sk-ve" not in failure.detail


async def test_a_status_counts_although_its_body_is_cut_off(site: Site) -> None:
    page = answer(b"half", status=429, content_length="1000", retry_after="7")
    failure = await failure_of(site, page)
    assert (failure.code, failure.retry_after) == ("rate_limited", 7)


async def test_a_status_counts_and_its_encoded_body_is_not_decoded(site: Site) -> None:
    page = answer(gzip.compress(b"x" * 5_000), status=429, content_encoding="gzip", retry_after="7")
    failure = await failure_of(site, page)
    assert (failure.code, failure.retry_after) == ("rate_limited", 7)
    assert "xxx" not in failure.detail


async def cut_off(writer: asyncio.StreamWriter) -> None:
    writer.write(completion()[:-5])


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


async def answer_nothing(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def send_slowly(writer: asyncio.StreamWriter) -> None:
    """Each byte comes within the timeout for reads."""
    for byte in completion():
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("page", [cut_off, hang_up, b"", b"SSH-2.0-OpenSSH_9.6\r\n"])
async def test_a_connection_that_breaks_is_retried(site: Site, page: bytes | Answer) -> None:
    failure = await failure_of(site, page)
    assert (failure.code, failure.transient) == (ModelUnreachable.code, True)


async def test_a_server_that_is_not_there_is_retried(site: Site) -> None:
    model = ModelClient("http://127.0.0.1:1/v1", "small", api_key=KEY)
    with pytest.raises(ModelUnreachable) as raised:
        await model.ask(Invoice, "Read this.")
    assert isinstance(raised.value, Transient)


@pytest.mark.parametrize(
    ("page", "limits"),
    [
        (answer_nothing, {"read": 0.1}),
        (answer_nothing, {"total": 0.1}),
        (send_slowly, {"total": 0.5}),
    ],
)
async def test_a_slow_answer_ends_with_the_timeouts(
    site: Site, page: Answer, limits: dict[str, float]
) -> None:
    failure = await failure_of(site, page, **limits)
    assert (failure.code, failure.transient) == (ModelTooSlow.code, True)
    assert failure.message == "The AI model did not answer in time."


async def test_a_cancelled_call_closes_its_connection(site: Site) -> None:
    async def send_forever(writer: asyncio.StreamWriter) -> None:
        writer.write(answer(content_length="1000000"))
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    asking = asyncio.create_task(ask(site, send_forever))
    while not site.requests:
        await asyncio.sleep(0.005)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.wait_for(site.disconnected.wait(), 10)


# Keys and addresses


async def test_the_key_is_in_no_log(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        await ask(site, completion())
        await failure_of(site, answer(status=401))
    assert caplog.text and KEY not in caplog.text


async def test_white_space_around_a_key_is_removed(site: Site) -> None:
    await ask(site, completion(), api_key=f" {KEY}\n")
    assert f"authorization: bearer {KEY}\r\n" in site.requests[0].lower()


@pytest.mark.parametrize("key", ["sk-\nsecret", "sk-sécret", "sk-\x00secret"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ModelClient("https://example.org/v1", "small", api_key=key)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["", "example.org", "ftp://example.org", "https://a:b@example.org"])
def test_an_address_must_be_an_http_url_without_a_password(url: str) -> None:
    with pytest.raises(InvalidInput, match="http or https URL"):
        ModelClient(url, "small")


# In a job


async def test_a_job_waits_as_long_as_the_endpoint_asks_and_records_its_usage(
    site: Site, mill: Mill
) -> None:
    model = client(site)

    @mill.task(retry=Retry(base=0, cap=1, jitter=0))
    async def read(job: Job) -> int:
        found = await model.ask(Invoice, "Read this.", job=job)
        job.use("eur", found.prompt_tokens * Decimal("0.00000015"))
        return found.value.number

    site.pages[PATH] = answer(status=429, retry_after="3600")
    async with mill.running():
        batch = await mill.submit(read, [None])
        async for event in batch.events():
            if event.type == "job_retrying":
                assert (event.data["code"], event.data["delay"]) == ("rate_limited", 3600)
                break
        await batch.cancel()
        site.pages[PATH] = completion(usage={"prompt_tokens": 3_000, "completion_tokens": 5})
        batch = await mill.submit(read, [None])
        assert (await batch.results()).values == [7]
    assert await batch.usage() == {
        "prompt_tokens": 3_000,
        "completion_tokens": 5,
        "eur": Decimal("0.00045"),
    }
