"""Links that let someone in without a key, and tokens that nobody else can make."""

from collections.abc import Awaitable, Callable, Mapping
from math import ceil

from batchmill.domain import link
from batchmill.errors import InvalidInput
from batchmill.store.keys import KeyStore

HOUR = 3_600.0
LONGEST = 366 * 86_400.0


class Signer:
    """The newest key signs, all that are kept are believed. Times are the database's."""

    def __init__(self, open: Callable[[], Awaitable[None]], keys: KeyStore):
        self._open = open
        self._store = keys

    async def sign(
        self, method: str, path: str, tenant: str, expires_in: float = HOUR
    ) -> dict[str, str]:
        """The query parameters that make the path a link."""
        keys, now = await self._keys()
        return link.sign_link(keys[0], method, path, tenant, _moment(now, expires_in))

    async def verify(self, method: str, path: str, query: Mapping[str, str]) -> str:
        """The tenant that the link was made for; raises InvalidLink or LinkExpired."""
        keys, now = await self._keys()
        return link.verify_link(keys, method, path, query, now)

    async def sign_text(self, purpose: str, text: str, expires_in: float | None = None) -> str:
        """A token that carries the text, for one purpose alone."""
        keys, now = await self._keys()
        expires = None if expires_in is None else _moment(now, expires_in)
        return link.sign_text(keys[0], purpose, text, expires)

    async def check_text(self, purpose: str, token: str) -> str:
        keys, now = await self._keys()
        return link.check_text(keys, purpose, token, now)

    async def rotate(self, keep: int = 2) -> None:
        """From now on a new key signs. The newest `keep` are believed: with 1, every link that was
        made before is void."""
        if keep < 1:
            raise InvalidInput("At least the new key has to be kept.")
        await self._open()
        await self._store.add_signing_key(keep=keep)

    async def _keys(self) -> tuple[list[link.SigningKey], float]:
        await self._open()
        return await self._store.signing_keys()


def _moment(now: float, expires_in: float) -> int:
    if not 0 < expires_in <= LONGEST:
        raise InvalidInput(f"A link lasts from a second to a year, not {expires_in!r} seconds.")
    return ceil(now + expires_in)
