"""Sends a mail to the SMTP server."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage

import aiosmtplib
from aiosmtplib import (
    SMTPAuthenticationError,
    SMTPException,
    SMTPRecipientsRefused,
    SMTPResponseException,
)

from batchmill.errors import Permanent, Transient
from batchmill.notify.mail_config import Relay

SECONDS = 30.0
FOR_GOOD = 500
STARTTLS = {"smtp": None, "smtps": False, "smtp+starttls": True}


async def send(mail: EmailMessage, relay: Relay) -> None:
    with understood():
        await aiosmtplib.send(
            mail,
            hostname=relay.host,
            port=relay.port,
            username=relay.username,
            password=relay.password,
            use_tls=relay.scheme == "smtps",
            start_tls=STARTTLS[relay.scheme],
            # Where TLS is optional, an unverified connection is better than an unencrypted one.
            validate_certs=relay.scheme != "smtp",
            local_hostname=mail["From"].addresses[0].domain,
            timeout=SECONDS,
        )


@contextmanager
def understood() -> Iterator[None]:
    """The first digit of the server's answer decides whether to retry."""
    try:
        yield
    except SMTPAuthenticationError:
        # The answer is dropped, because it may repeat the credentials. Transient, because an
        # operator can correct the settings.
        raise Transient("The mail server refused the login.", code="mail_login") from None
    except (SMTPResponseException, SMTPRecipientsRefused) as error:
        if code_of(error) >= FOR_GOOD:
            raise Permanent("The mail server refused the mail.", code="mail_refused") from error
        raise Transient("The mail server asks to try again later.", code="mail_deferred") from error
    except (SMTPException, OSError, ssl.SSLError) as error:
        raise Transient("The mail server cannot be reached.", code="mail_unreachable") from error


def code_of(error: SMTPResponseException | SMTPRecipientsRefused) -> int:
    if isinstance(error, SMTPRecipientsRefused):
        return max(refused.code for refused in error.recipients)
    return error.code
