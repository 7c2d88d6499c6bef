"""Signed links that give access without an API key, and signed tokens that cannot be forged."""

from collections.abc import Awaitable, Callable, Mapping
from math import ceil

from batchmill.domain import link
from batchmill.errors import InvalidInput
from batchmill.store.keys import KeyStore

HOUR = 3_600.0
LONGEST = 366 * 86_400.0


class Signer:
    """Signs with the newest key, and accepts all kept keys. Times come from the database."""

    def __init__(self, open: Callable[[], Awaitable[None]], keys: KeyStore):
        self._open = open
        self._store = keys

    async def sign(
        self, method: str, path: str, tenant: str, expires_in: float = HOUR
    ) -> dict[str, str]:
        """Returns the query parameters that turn the path into a signed link."""
        keys, now = await self._keys()
        return link.sign_link(keys[0], method, path, tenant, _moment(now, expires_in))

    async def verify(self, method: str, path: str, query: Mapping[str, str]) -> str:
        """Returns the tenant of the link. Raises InvalidLink or LinkExpired."""
        return (await self.verified(method, path, query)).text

    async def verified(self, method: str, path: str, query: Mapping[str, str]) -> link.Verified:
        """Like `verify`, with the seconds until the link expires."""
        keys, now = await self._keys()
        return link.verify_link(keys, method, path, query, now)

    async def sign_text(self, purpose: str, text: str, expires_in: float | None = None) -> str:
        """Returns a token that contains the text. It is valid for one purpose only."""
        keys, now = await self._keys()
        expires = None if expires_in is None else _moment(now, expires_in)
        return link.sign_text(keys[0], purpose, text, expires)

    async def check_text(self, purpose: str, token: str) -> str:
        return (await self.checked_text(purpose, token)).text

    async def checked_text(self, purpose: str, token: str) -> link.Verified:
        """Like `check_text`, with the seconds until the token expires."""
        keys, now = await self._keys()
        return link.check_text(keys, purpose, token, now)

    async def rotate(self, keep: int = 2) -> None:
        """Creates a new signing key. The newest `keep` keys stay valid. With 1, all existing links
        become invalid."""
        if keep < 1:
            raise InvalidInput(f"keep must be at least 1, not {keep}: the new key is always kept.")
        await self._open()
        await self._store.add_signing_key(keep=keep)

    async def _keys(self) -> tuple[list[link.SigningKey], float]:
        await self._open()
        return await self._store.signing_keys()


def _moment(now: float, expires_in: float) -> int:
    if not 0 < expires_in <= LONGEST:
        raise InvalidInput(
            f"expires_in must be greater than 0 seconds and at most 1 year, not {expires_in!r}."
        )
    return ceil(now + expires_in)
