"""The mail server and the sender of mails."""

from contextlib import suppress
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.utils import parseaddr
from ipaddress import ip_address
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit

from batchmill.config import NotifySettings
from batchmill.errors import ConfigurationError

# `smtps` uses TLS from the start, `smtp+starttls` requires it, `smtp` uses it if available.
PORTS = {"smtp": 25, "smtps": 465, "smtp+starttls": 587}


@dataclass(frozen=True, slots=True)
class Relay:
    """The SMTP server that accepts the mails."""

    scheme: str
    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str) -> Self:
        """The error does not quote the invalid part, because it may belong to the password."""
        parts = _split(url)
        if parts is None or parts.scheme not in PORTS or not parts.hostname:
            raise ConfigurationError(
                "BATCHMILL_SMTP_URL is not valid. Use smtps://user:password@host:465, "
                "smtp+starttls://user:password@host:587 or smtp://host:25. Encode special "
                "characters, for example @ as %40."
            )
        relay = cls(
            parts.scheme,
            parts.hostname,
            parts.port or PORTS[parts.scheme],
            unquote(parts.username) if parts.username else None,
            unquote(parts.password) if parts.password else None,
        )
        if relay.password and relay.scheme == "smtp" and not _is_here(relay.host):
            raise ConfigurationError(
                "BATCHMILL_SMTP_URL would send its password without encryption. Use smtps:// "
                "or smtp+starttls://."
            )
        return relay


@dataclass(frozen=True, slots=True)
class MailConfig:
    relay: Relay
    sender: Address
    public_url: str | None

    @classmethod
    def of(cls, settings: NotifySettings) -> Self | None:
        """None if mail is not configured. An incomplete configuration is refused."""
        if settings.smtp_url is None and settings.mail_from is None:
            return None
        if settings.smtp_url is None or settings.mail_from is None:
            raise ConfigurationError(
                "To send mail, set both BATCHMILL_SMTP_URL and BATCHMILL_MAIL_FROM."
            )
        return cls(Relay.parse(settings.smtp_url), _sender(settings.mail_from), settings.public_url)


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return parts if parts.port != 0 else None
    except ValueError:
        return None


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _sender(text: str) -> Address:
    name, address = parseaddr(text)
    with suppress(ValueError, IndexError):
        if text.isprintable() and "@" in address:
            return Address(name, addr_spec=address)
    raise ConfigurationError(
        'BATCHMILL_MAIL_FROM must be an email address, such as "Batches '
        f'<batches@example.org>", not {text!r}.'
    )
