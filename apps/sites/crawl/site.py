"""Which addresses belong to the site."""

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit, urlunsplit

_PORT = re.compile(r":[0-9]+$")


@dataclass(frozen=True, slots=True)
class Site:
    """A host and a port. `www.` and the bare domain are one site, and so are http and https. Other
    subdomains and other ports are not."""

    scheme: str
    authority: str

    @classmethod
    def of(cls, address: str) -> Self:
        """The site of a normalised address, which has a port only if it is not the usual one."""
        parts = urlsplit(address)
        return cls(parts.scheme, parts.netloc)

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def host(self) -> str:
        return _PORT.sub("", self.authority)

    def at(self, path: str) -> str:
        return self.origin + path

    def contains(self, address: str) -> bool:
        authority = urlsplit(address).netloc
        return authority.removeprefix("www.") == self.authority.removeprefix("www.")

    def adopt(self, address: str) -> str:
        """The same address at the scheme and the host where the start page was."""
        parts = urlsplit(address)
        return urlunsplit((self.scheme, self.authority, parts.path, parts.query, ""))
