"""A mail server on loopback that stores mails and sends the answers that a test provides."""

import asyncio
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from ssl import SSLContext
from typing import Any, Self

from aiosmtpd.smtp import SMTP, Envelope

ACCEPTED = "250 Kept"


class Mailbox:
    """Answers mails with `answers` in order, and RCPT commands with `rcpt_answers`; then with 250.

    With `ssl` it uses TLS from the start. The options are those of the server.
    """

    def __init__(self, *, ssl: SSLContext | None = None, **options: Any):
        self.answers: list[str] = []
        self.rcpt_answers: list[str] = []
        self.envelopes: list[Envelope] = []
        self.port = 0
        self._ssl = ssl
        self._options = options

    async def __aenter__(self) -> Self:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: SMTP(self, **self._options), "127.0.0.1", self.port, ssl=self._ssl
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    @property
    def mails(self) -> list[EmailMessage]:
        parser: Any = BytesParser(policy=default)
        return [parser.parsebytes(envelope.original_content) for envelope in self.envelopes]

    async def handle_RCPT(
        self, server: SMTP, session: Any, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        answer = self.rcpt_answers.pop(0) if self.rcpt_answers else ACCEPTED
        if answer == ACCEPTED:
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Envelope) -> str:
        answer = self.answers.pop(0) if self.answers else ACCEPTED
        if answer == ACCEPTED:
            self.envelopes.append(envelope)
        return answer
