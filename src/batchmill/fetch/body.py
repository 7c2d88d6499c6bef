"""The body of a response: decoded, counted, and aborted when it exceeds a limit."""

from batchmill.errors import BadResponse, ResponseTooLarge, Unreachable
from batchmill.fetch.decoder import Plain, decoder_for
from batchmill.fetch.limits import MIB
from batchmill.fetch.request import Request

# The ratio is not limited for small bodies: a page of blanks is no attack.
_FREE = MIB


class Body:
    def __init__(self, request: Request):
        self._request = request
        self._limits = request.limits
        self._decoder = decoder_for(request.headers.get("content-encoding", ""))
        self._received = 0
        self.size = 0
        self._check_announced()

    async def next(self) -> bytes:
        """The next bytes; empty at the end."""
        while not (piece := self._decoder.take()):
            data = await self._request.receive()
            if not data:
                self._check_complete()
                return b""
            self._received += len(data)
            self._decoder.feed(data)
        self.size += len(piece)
        self._check_size()
        return piece

    def _check_announced(self) -> None:
        announced = int(self._request.headers.get("content-length", 0))
        is_plain = isinstance(self._decoder, Plain)
        if announced > self._limits.wire or (is_plain and announced > self._limits.size):
            raise self._too_large()

    def _check_size(self) -> None:
        if self.size > self._limits.size:
            raise self._too_large()
        if self.size > _FREE and self.size > self._received * self._limits.ratio:
            raise ResponseTooLarge(
                f"{self._request.host} sends compressed data that expands too much."
            )

    def _check_complete(self) -> None:
        if self._decoder.is_complete:
            return
        host = self._request.host
        if self._request.closed_by_server:
            raise Unreachable(f"{host} closed the connection before its response was complete.")
        raise BadResponse(f"{host} sends incomplete gzip data.")

    def _too_large(self) -> ResponseTooLarge:
        most = min(self._limits.size, self._limits.wire)
        return ResponseTooLarge(
            f"The response of {self._request.host} is larger than the limit of {most:,} bytes."
        )
