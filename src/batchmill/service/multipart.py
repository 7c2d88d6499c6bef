"""The parts of a form. A multipart body is read part by part as it arrives: only small fields are
held in memory. The fields of a URL-encoded body have the same form and the same rules."""

from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from email.message import Message
from urllib.parse import unquote_to_bytes

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from batchmill.service.problems import BadRequest, TooLarge

MOST_HEADERS = 8
MOST_HEADER_BYTES = 4_096
# By RFC 2046.
MOST_BOUNDARY_BYTES = 70


@dataclass
class Part:
    """A field, or a file if it has a file name. Read its bytes before the next part."""

    name: str
    file_name: str | None
    media_type: str | None
    chunks: AsyncIterator[bytes]

    async def text(self, most: int) -> str:
        found = bytearray()
        async for chunk in self.chunks:
            found += chunk
            if len(found) > most:
                raise TooLarge(f"The field {self.name} is larger than the limit of {most} bytes.")
        return decoded(bytes(found))


class Fields(dict[str, str]):
    """The text fields of a form. They are held in memory, so they share one size limit."""

    def __init__(self, room: int):
        super().__init__()
        self._room = room
        self.size = 0

    async def take(self, part: Part) -> None:
        if part.name in self:
            raise BadRequest(f"The field {part.name} occurs twice. Send it once.")
        self[part.name] = text = await part.text(self._room - self.size)
        self.size += len(text.encode())


@dataclass
class Reader:
    """Holds the parser's output until it is consumed."""

    chunks: AsyncIterator[bytes]
    boundary: bytes
    most_parts: int
    _seen: deque[tuple[str, bytes]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._parser = MultipartParser(
            self.boundary,
            {
                "on_part_begin": lambda: self._see("begin"),
                "on_header_field": lambda *data: self._see("name", *data),
                "on_header_value": lambda *data: self._see("value", *data),
                "on_header_end": lambda: self._see("header"),
                "on_headers_finished": lambda: self._see("ready"),
                "on_part_data": lambda *data: self._see("data", *data),
                "on_part_end": lambda: self._see("end"),
                "on_end": lambda: self._see("finish"),
            },
            max_header_count=MOST_HEADERS,
            max_header_size=MOST_HEADER_BYTES,
        )

    async def parts(self) -> AsyncIterator[Part]:
        count = 0
        while (await self._next())[0] == "begin":
            count += 1
            if count > self.most_parts:
                raise TooLarge(f"The form has more parts than the limit of {self.most_parts}.")
            part = await self._part()
            yield part
            async for _ in part.chunks:
                pass

    async def _part(self) -> Part:
        headers = await self._headers()
        kind, options = parse_options_header(headers.get("content-disposition"))
        if kind != b"form-data" or b"name" not in options:
            raise BadRequest(
                "A part of the form has no name. Each part needs Content-Disposition: "
                "form-data with a name."
            )
        return Part(
            decoded(options[b"name"]),
            file_name_of(headers["content-disposition"], options.get(b"filename")),
            headers.get("content-type"),
            self._data(),
        )

    async def _headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        name = value = b""
        while (seen := await self._next())[0] != "ready":
            match seen:
                case "name", data:
                    name += data
                case "value", data:
                    value += data
                case _:
                    found[name.decode("latin-1").lower()] = value.decode("latin-1")
                    name = value = b""
        return found

    async def _data(self) -> AsyncIterator[bytes]:
        while (seen := await self._next())[0] == "data":
            yield seen[1]

    async def _next(self) -> tuple[str, bytes]:
        while not self._seen:
            chunk = await anext(self.chunks, None)
            if chunk is None:
                raise BadRequest("The body ends in the middle of a part.")
            try:
                self._parser.write(chunk)
            except FormParserError as error:
                raise BadRequest(f"The body is not a valid multipart form: {error}") from None
        return self._seen.popleft()

    def _see(self, what: str, data: bytes = b"", start: int = 0, end: int = 0) -> None:
        self._seen.append((what, bytes(data[start:end])))


def file_name_of(disposition: str, plain: bytes | None) -> str | None:
    """RFC 7578 forbids `filename*` in forms, but some clients send only that."""
    if plain is not None:
        return plain.decode(errors="replace")
    message = Message()
    message["Content-Disposition"] = disposition
    return message.get_filename()


def boundary_of(content_type: str) -> bytes:
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 0 < len(boundary) <= MOST_BOUNDARY_BYTES:
        raise BadRequest("Send multipart/form-data with a boundary of 1 to 70 characters.")
    return boundary


def encoded_fields(body: bytes, most: int) -> Iterator[Part]:
    """The fields of a URL-encoded form: https://url.spec.whatwg.org/#urlencoded-parsing"""
    if body.count(b"&") >= most:
        raise BadRequest(f"The form has too many fields: the limit is {most}.")
    for pair in body.replace(b"+", b" ").split(b"&"):
        name, _, value = pair.partition(b"=")
        yield Part(decoded(unquote_to_bytes(name)), None, None, whole(unquote_to_bytes(value)))


async def whole(body: bytes) -> AsyncIterator[bytes]:
    yield body


def decoded(text: bytes) -> str:
    try:
        found = text.decode()
    except UnicodeDecodeError:
        raise BadRequest("A field of the form is not valid UTF-8.") from None
    if "\0" in found:
        raise BadRequest("A field of the form has a NUL character.")
    return found
