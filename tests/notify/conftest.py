from collections.abc import AsyncIterator

import pytest

from batchmill import Mill
from tests.notify.mailbox import Mailbox
from tests.notify.receiver import Receiver


@pytest.fixture
async def receiver(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Receiver]:
    """A receiver that may be called although it is on loopback."""
    async with Receiver() as receiver:
        monkeypatch.setenv("BATCHMILL_ALLOWED_ADDRESSES", f"127.0.0.1:{receiver.port}")
        yield receiver


@pytest.fixture
async def mailbox(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mailbox]:
    """The mail server that the settings name."""
    async with Mailbox() as mailbox:
        monkeypatch.setenv("BATCHMILL_SMTP_URL", mailbox.url)
        monkeypatch.setenv("BATCHMILL_MAIL_FROM", "Batches <batches@mill.example>")
        monkeypatch.setenv("BATCHMILL_PUBLIC_URL", "https://mill.example/")
        yield mailbox


@pytest.fixture
def mill(receiver: Receiver, mailbox: Mailbox, mill: Mill) -> Mill:
    """A mill that can call the receiver and send mail to the mailbox."""
    return mill
