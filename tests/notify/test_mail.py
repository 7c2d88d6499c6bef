"""Mail about finished batches, as it arrives."""

import shutil
import ssl
import subprocess
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from aiosmtpd.smtp import AuthResult

from batchmill import BatchState, BatchSummary, ConfigurationError, JobRecord, Mill
from batchmill.config import NotifySettings
from batchmill.domain.notification import Message, outcome_of
from batchmill.notify import mail
from batchmill.notify.mail_config import MailConfig, Relay
from tests.notify.mailbox import Mailbox
from tests.notify.tools import ADA, delivered, running_later, settled, work_on

ID = UUID("0b4cbf18-4a2d-4a3e-8a35-0c5d4c6a6f10")


def part(message: EmailMessage, kind: str) -> str:
    body = message.get_body((kind,))
    assert body is not None
    return body.get_content()


async def test_a_mail_has_the_outcome_the_counters_and_a_link(mill: Mill, mailbox: Mailbox) -> None:
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, [1, 2, "fail"], notify=ADA, labels={"meet": "Spring"})
        await batch.wait()
        await delivered(mill, batch)
    (message,) = mailbox.mails
    (envelope,) = mailbox.envelopes
    assert (envelope.mail_from, envelope.rcpt_tos) == ("batches@mill.example", [ADA])
    assert (message["From"], message["To"]) == ("Batches <batches@mill.example>", ADA)
    assert message["Subject"] == "work: 2 of 3 jobs completed, 1 failed."
    assert message["Auto-Submitted"] == "auto-generated"
    finished_at = (await batch.get()).finished_at
    assert finished_at and message["Date"].datetime == finished_at.replace(microsecond=0)
    for kind in ("plain", "html"):
        text = part(message, kind)
        for expected in (
            "2 of 3 jobs completed, 1 failed.",
            f"https://mill.example/batches/{batch.id}",
            "Spring",
            "UTC",
        ):
            assert expected in text
    assert "Completed: 2\nFailed: 1\nCancelled: 0\n" in part(message, "plain").replace("\r", "")


async def test_the_subject_has_the_title_of_the_batch(mill: Mill, mailbox: Mailbox) -> None:
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, [1], notify=ADA, labels={"title": "Spring\r\nmeet"})
        await batch.wait()
        await delivered(mill, batch)
    (message,) = mailbox.mails
    assert message["Subject"] == "Spring meet: The job completed."


async def test_mails_of_two_generations_form_a_thread(
    mill: Mill, mailbox: Mailbox, dsn: str
) -> None:
    mailbox.answers = ["451 Try again later", "250 Kept"]
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, ["fail"], notify=ADA)
        await batch.wait()
        job = await settled(mill, batch)
    assert job.attempts[0]["code"] == "mail_deferred"
    async with running_later(mill, dsn, "10m") as ahead:
        await delivered(ahead, ahead.batch(batch.id))
        await ahead.batch(batch.id).retry()
        await ahead.batch(batch.id).wait()
        await delivered(ahead, ahead.batch(batch.id))
    first, second = mailbox.mails
    assert first["Message-ID"] != second["Message-ID"]
    assert second["References"] == first["Message-ID"]
    assert first["Message-ID"].endswith(".1@mill.example>")


@pytest.mark.parametrize(
    ("where", "answer", "state", "code"),
    [
        ("rcpt", "550 No such user", "failed", "mail_refused"),
        ("rcpt", "450 Greylisted", "scheduled", "mail_deferred"),
        ("data", "554 Spam", "failed", "mail_refused"),
        ("data", "452 Out of space", "scheduled", "mail_deferred"),
    ],
)
async def test_the_answer_of_the_server_decides_about_a_retry(
    mill: Mill, mailbox: Mailbox, where: str, answer: str, state: str, code: str
) -> None:
    (mailbox.rcpt_answers if where == "rcpt" else mailbox.answers).append(answer)
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, [1], notify=ADA)
        await batch.wait()
        job = await settled(mill, batch)
    assert (job.state, job.attempts[0]["code"]) == (state, code)
    assert ADA not in job.attempts[0]["message"]


async def test_a_mail_is_retried_if_the_server_was_down(
    mill: Mill, mailbox: Mailbox, dsn: str
) -> None:
    work = work_on(mill)
    await mailbox.__aexit__()
    async with mill.running():
        batch = await mill.submit(work, [1], notify=ADA)
        await batch.wait()
        job = await settled(mill, batch)
    assert job.attempts[0]["code"] == "mail_unreachable"
    async with mailbox, running_later(mill, dsn, "10m") as ahead:
        assert await ahead.job(job.id).result() == "The mail server accepted the mail."
    assert len(mailbox.mails) == 1


async def test_a_wrong_password_is_retried_and_not_shown(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    def authenticator(*args: Any) -> AuthResult:
        return AuthResult(success=args[-1].password == b"right p@ss", handled=False)

    async with Mailbox(authenticator=authenticator, auth_require_tls=False) as locked:
        for password, state in (("wrong", "scheduled"), ("right%20p%40ss", "completed")):
            url = f"smtp://ada:{password}@127.0.0.1:{locked.port}"
            job = await send_mail(mill, monkeypatch, url)
            assert job.state == state
            assert "wrong" not in str(job.attempts)
    assert len(locked.mails) == 1


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key in the same file."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed.")
    made = tmp_path_factory.mktemp("certificate") / "both.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = ["-subj", "/CN=mail", "-addext", "subjectAltName=IP:127.0.0.1"]
    key = made.with_name("key.pem")
    files = ["-keyout", str(key), "-out", str(made)]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    made.write_text(made.read_text() + key.read_text())
    return made


async def send_mail(mill: Mill, monkeypatch: pytest.MonkeyPatch, url: str) -> JobRecord:
    """Notifies Ada through this server, and returns the delivery job."""
    monkeypatch.setenv("BATCHMILL_SMTP_URL", url)
    sending = mill.on()
    work = sending.tasks.get("work") or work_on(sending)
    async with sending.running():
        batch = await sending.submit(work, [1], notify=ADA)
        await batch.wait()
        return await settled(sending, batch)


@pytest.mark.parametrize("scheme", ["smtps", "smtp+starttls"])
async def test_an_encrypted_connection_requires_a_trusted_certificate(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, certificate: Path, scheme: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    options: dict[str, Any] = {"tls_context": context, "require_starttls": True}
    from_the_start = context if scheme == "smtps" else None
    async with Mailbox(ssl=from_the_start, **({} if from_the_start else options)) as secure:
        url = f"{scheme}://127.0.0.1:{secure.port}"
        job = await send_mail(mill, monkeypatch, url)
        assert (job.state, job.attempts[0]["code"]) == ("scheduled", "mail_unreachable")
        assert secure.mails == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert (await send_mail(mill, monkeypatch, url)).state == "completed"
    assert len(secure.mails) == 1


async def test_starttls_is_required_if_the_url_asks_for_it(
    mill: Mill, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = mailbox.url.replace("smtp:", "smtp+starttls:")
    job = await send_mail(mill, monkeypatch, url)
    assert (job.state, job.attempts[0]["code"]) == ("scheduled", "mail_unreachable")
    assert mailbox.mails == []


async def test_any_certificate_is_accepted_if_encryption_is_optional(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, certificate: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with Mailbox(tls_context=context, require_starttls=True) as strict:
        assert (await send_mail(mill, monkeypatch, strict.url)).state == "completed"


async def test_labels_cannot_inject_html_or_headers(mill: Mill, mailbox: Mailbox) -> None:
    labels = {
        "<script>alert(1)</script>": "<img src=x onerror=alert(1)>",
        "meet": "Spring\r\nBcc: eve@evil.example\r\n\r\nYour account was closed.",
        "$url": "${link} $$",
        "quote": "\"' onmouseover=alert(1) ",
    }
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, [1], notify=ADA, labels=labels)
        await batch.wait()
        await delivered(mill, batch)
    (message,) = mailbox.mails
    html = part(message, "html")
    assert "<script" not in html and "<img" not in html and "&lt;script&gt;" in html
    assert "Spring Bcc: eve@evil.example Your account was closed." in part(message, "plain")
    assert message["Bcc"] is None and mailbox.envelopes[0].rcpt_tos == [ADA]


def summary(**changes: Any) -> BatchSummary:
    given: dict[str, Any] = {
        "batch_id": ID,
        "tenant": "default",
        "state": BatchState.COMPLETED,
        "total": 3,
        "completed": 3,
        "failed": 0,
        "cancelled": 0,
        "generation": 1,
    }
    return BatchSummary(**given | changes)


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        (summary(), "All 3 jobs completed."),
        (summary(total=1, completed=1), "The job completed."),
        (summary(total=12_000, completed=12_000), "All 12,000 jobs completed."),
        (
            summary(state=BatchState.PARTIAL, completed=2, failed=1),
            "2 of 3 jobs completed, 1 failed.",
        ),
        (
            summary(state=BatchState.FAILED, completed=0, failed=3),
            "0 of 3 jobs completed, 3 failed.",
        ),
        (summary(state=BatchState.FAILED, total=1, completed=0, failed=1), "The job failed."),
        (
            summary(state=BatchState.CANCELLED, completed=1, cancelled=2),
            "The batch was cancelled. Before that, 1 of 3 jobs completed.",
        ),
    ],
)
def test_outcome_of_returns_a_sentence(batch: BatchSummary, sentence: str) -> None:
    assert outcome_of(batch) == sentence


def message(**changes: Any) -> Message:
    given = {
        "notification_id": uuid4(),
        "finished_at": datetime(2030, 1, 2, 3, 4, tzinfo=UTC),
        "task": "extract",
        "labels": {},
        "batch": summary(),
    }
    return Message(**given | changes)


def mail_config(**changes: Any) -> MailConfig:
    result = MailConfig.of(NotifySettings(smtp_url="smtp://relay", mail_from=ADA, **changes))
    assert result is not None
    return result


def test_a_mail_has_no_link_without_a_public_url() -> None:
    text = mail.text_of(message(), mail_config())
    assert "http" not in text and str(ID) in text
    assert "<a " not in mail.html_of(message(), mail_config())
    assert "<a " in mail.html_of(message(), mail_config(public_url="https://mill.example"))


@pytest.mark.parametrize("address", ["ada@example.org\r\nBcc: eve@evil.example", "a\n@b.c", ""])
def test_an_invalid_address_cannot_be_written_into_a_mail(address: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        mail.written(message(), address, mail_config())


@pytest.mark.parametrize(
    ("url", "relay"),
    [
        ("smtp://relay", Relay("smtp", "relay", 25)),
        ("smtps://u:p%40ss@relay", Relay("smtps", "relay", 465, "u", "p@ss")),
        ("smtp+starttls://u:p@relay:2525", Relay("smtp+starttls", "relay", 2525, "u", "p")),
        ("smtp://u:p@localhost", Relay("smtp", "localhost", 25, "u", "p")),
    ],
)
def test_a_relay_url_is_parsed(url: str, relay: Relay) -> None:
    assert Relay.parse(url) == relay


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"smtp_url": "smtp://relay"}, "set both"),
        ({"mail_from": ADA}, "set both"),
        ({"smtp_url": "relay.secret", "mail_from": ADA}, "is not valid"),
        ({"smtp_url": "smtp://relay:secret", "mail_from": ADA}, "is not valid"),
        ({"smtp_url": "http://u:secret@relay", "mail_from": ADA}, "is not valid"),
        ({"smtp_url": "smtp://u:secret@relay", "mail_from": ADA}, "without encryption"),
        ({"smtp_url": "smtp://relay", "mail_from": "nobody"}, "BATCHMILL_MAIL_FROM"),
        ({"smtp_url": "smtp://relay", "mail_from": "a@b.c\r\nBcc: d@e.f"}, "BATCHMILL_MAIL_FROM"),
    ],
)
def test_invalid_settings_are_refused_without_showing_the_password(
    settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason) as refused:
        MailConfig.of(NotifySettings(**settings))
    assert "secret" not in str(refused.value)
