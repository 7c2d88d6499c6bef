"""The mail about a finished batch: the outcome in a sentence, the counts, a link."""

from collections.abc import Iterator
from datetime import UTC
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from batchmill.domain.batch import BatchState
from batchmill.domain.notification import Message, outcome_of
from batchmill.notify.mail_config import MailConfig

COLOURS = {
    BatchState.COMPLETED: "#2e9d5b",
    BatchState.PARTIAL: "#c98a1b",
    BatchState.FAILED: "#d14343",
    BatchState.CANCELLED: "#808790",
}
LABELS_SHOWN = 10
TITLE = "title"
LABEL_LENGTH = 200


def written(message: Message, address: str, mail_config: MailConfig) -> EmailMessage:
    mail = EmailMessage(policy=SMTP)
    mail["From"] = mail_config.sender
    mail["To"] = Address(addr_spec=address)
    mail["Subject"] = f"{title_of(message)}: {outcome_of(message.batch)}"
    mail["Date"] = message.finished_at.astimezone(UTC)
    mail["Message-ID"] = message_id(message, mail_config, message.batch.generation)
    if message.batch.generation > 1:
        mail["References"] = message_id(message, mail_config, 1)
    # Prevents automatic replies.
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(text_of(message, mail_config))
    mail.add_alternative(html_of(message, mail_config), subtype="html")
    return mail


def title_of(message: Message) -> str:
    """The batch's title, if it has one, or else the name of the task."""
    return _line(message.labels.get(TITLE, message.task))


def message_id(message: Message, mail_config: MailConfig, generation: int) -> str:
    """The same for all deliveries, so that mail programs detect a repeated one. Mails of later
    generations refer to the first."""
    return f"<{message.notification_id.hex}.{generation}@{mail_config.sender.domain}>"


def link_to(message: Message, mail_config: MailConfig) -> str | None:
    if mail_config.public_url is None:
        return None
    return f"{mail_config.public_url}/batches/{message.batch.batch_id}"


def text_of(message: Message, mail_config: MailConfig) -> str:
    facts = [f"{name}: {value}" for name, value in facts_of(message)]
    link = link_to(message, mail_config)
    return "\n".join([outcome_of(message.batch), "", *facts, *(["", link] if link else [])])


def html_of(message: Message, mail_config: MailConfig) -> str:
    link = link_to(message, mail_config)
    return _template("finished").substitute(
        outcome=escape(outcome_of(message.batch)),
        colour=COLOURS.get(message.batch.state, COLOURS[BatchState.CANCELLED]),
        facts="".join(_rows(message)),
        link=_template("link").substitute(url=escape(link)) if link else "",
    )


def facts_of(message: Message) -> Iterator[tuple[str, str]]:
    """A title replaces the task's name in the subject, so the name is hidden here too."""
    batch = message.batch
    if TITLE not in message.labels:
        yield "Task", message.task
    for name in ("total", "completed", "failed", "cancelled"):
        yield name.capitalize(), f"{getattr(batch, name):,}"
    yield "Finished", f"{message.finished_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    yield "Batch", str(batch.batch_id)
    labels = [label for label in message.labels.items() if label[0] != TITLE]
    for name, value in labels[:LABELS_SHOWN]:
        yield _line(name), _line(value)


def _rows(message: Message) -> Iterator[str]:
    row = _template("fact")
    for name, value in facts_of(message):
        yield row.substitute(name=escape(name), value=escape(value))


def _line(value: Any) -> str:
    """On one line, so that a label cannot look like a part of the mail's own text."""
    return " ".join(str(value).split())[:LABEL_LENGTH]


def _template(name: str) -> Template:
    return Template((files("batchmill.notify") / "templates" / f"{name}.html").read_text())
