"""The body of a response: decoded, counted, and aborted when it exceeds a limit."""

from batchmill.errors import BadResponse, ResponseTooLarge, Unreachable
from batchmill.fetch.decoder import Plain, decoder_for
from batchmill.fetch.exchange import Exchange
from batchmill.fetch.limits import MIB

# The ratio is not limited for small bodies: a page of blanks is no attack.
_FREE = MIB


class Body:
    def __init__(self, exchange: Exchange):
        self._exchange = exchange
        self._limits = exchange.limits
        self._decoder = decoder_for(exchange.headers.get("content-encoding", ""))
        self._received = 0
        self.size = 0
        self._check_announced()

    async def next(self) -> bytes:
        """The next bytes; empty at the end."""
        while not (piece := self._decoder.take()):
            data = await self._exchange.receive()
            if not data:
                self._check_complete()
                return b""
            self._received += len(data)
            self._decoder.feed(data)
        self.size += len(piece)
        self._check_size()
        return piece

    def _check_announced(self) -> None:
        announced = int(self._exchange.headers.get("content-length", 0))
        is_plain = isinstance(self._decoder, Plain)
        if announced > self._limits.wire or (is_plain and announced > self._limits.size):
            raise self._too_large()

    def _check_size(self) -> None:
        if self.size > self._limits.size:
            raise self._too_large()
        if self.size > _FREE and self.size > self._received * self._limits.ratio:
            raise ResponseTooLarge(
                f"{self._exchange.host} sends something that unpacks to a suspicious size."
            )

    def _check_complete(self) -> None:
        if self._decoder.is_complete:
            return
        host = self._exchange.host
        if self._exchange.broke_off:
            raise Unreachable(f"{host} broke off before its answer was complete.")
        raise BadResponse(f"{host} sends a gzip file that has no end.")

    def _too_large(self) -> ResponseTooLarge:
        most = min(self._limits.size, self._limits.wire)
        return ResponseTooLarge(
            f"{self._exchange.host} sends more than the {most:,} bytes that are accepted."
        )
