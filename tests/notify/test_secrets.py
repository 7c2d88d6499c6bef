"""Secrets are stored only where they are needed, and are never logged."""

import logging
from typing import Any

import psycopg
import pytest
from aiosmtpd.smtp import AuthResult
from psycopg import sql as q

from batchmill import Mill
from batchmill.config import NotifySettings
from batchmill.notify.mail_config import MailConfig
from tests.library.tools import rows
from tests.notify.mailbox import Mailbox
from tests.notify.receiver import Receiver, status
from tests.notify.tools import ADA, settled, work_on

CANARY = "canary-3f9b"
TABLES = """select c.relname from pg_class c
    where c.relnamespace = 'batchmill'::regnamespace and c.relkind in ('r', 'p')"""


def holders(sql: psycopg.Connection[Any], text: str) -> set[str]:
    """The tables with a row that contains the text."""
    return {
        name
        for (name,) in rows(sql, TABLES)
        if sql.execute(
            q.SQL("select from {} t where strpos(t::text, %s) > 0 limit 1").format(
                q.Identifier("batchmill", name)
            ),
            [text],
        ).rowcount
    }


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """All that was logged, except by the mail server of the test."""
    ours = [record for record in caplog.records if not record.name.startswith("mail")]
    return "\n".join(map(logging.Formatter().format, ours))


async def test_the_secret_of_a_webhook_is_stored_only_in_its_row(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """For deliveries that fail, that disable the webhook, and that succeed."""
    caplog.set_level(logging.DEBUG)
    receiver.answers = [status(500), status(410), status(200)]
    work = work_on(mill)
    hook = await mill.webhooks.save(receiver.url)
    rotated = await mill.webhooks.rotate(hook.id)
    async with mill.running():
        for place in range(3):
            batch = await mill.submit(work, ["fail"], notify=receiver.url)
            await receiver.wait_for(place + 1)
            await settled(mill, batch)
            await mill.webhooks.enable(hook.id)
    assert hook.secret and rotated.secret
    for secret in (hook.secret, rotated.secret):
        bare = secret.removeprefix("whsec_")
        assert holders(sql, bare) == {"webhooks"}
        assert bare not in logged(caplog) + repr(receiver.deliveries)


async def test_the_password_of_the_mail_server_is_neither_stored_nor_logged(
    mill: Mill,
    sql: psycopg.Connection,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even if the server repeats it in its answer."""

    def refuse(*_: Any) -> AuthResult:
        return AuthResult(success=False, handled=False, message=f"535 Not {CANARY}")

    caplog.set_level(logging.DEBUG)
    work = work_on(mill)
    async with Mailbox(authenticator=refuse, auth_require_tls=False) as mailbox:
        url = f"smtp://me:{CANARY}@127.0.0.1:{mailbox.port}"
        monkeypatch.setenv("BATCHMILL_SMTP_URL", url)
        async with mill.running():
            batch = await mill.submit(work, ["fail"], notify=ADA)
            await batch.wait()
            job = await settled(mill, batch)
    assert job.attempts[0]["code"] == "mail_login"
    assert holders(sql, CANARY) == set()
    assert CANARY not in logged(caplog)
    assert holders(sql, ADA) == {"notifications"}


async def test_payloads_contain_no_addresses_and_no_secrets(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection
) -> None:
    batch = await mill.submit(work_on(mill), [1], notify=[receiver.url, ADA], delay=3600)
    await batch.cancel()
    payloads = rows(sql, "select payload from batchmill.jobs where batchmill.is_builtin(task)")
    assert len(payloads) == 2
    for (payload,) in payloads:
        assert payload.keys() == {"notification_id", "finished_at", "task", "labels", "batch"}
    assert ADA not in str(payloads) and receiver.url not in str(payloads)


def test_the_repr_of_settings_does_not_contain_the_password() -> None:
    settings = NotifySettings(smtp_url=f"smtps://u:{CANARY}@host", mail_from=ADA)
    assert CANARY not in repr(settings) + repr(MailConfig.of(settings))
