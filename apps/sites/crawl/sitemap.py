"""Reads sitemap files: lists of pages, lists of other sitemaps, and plain lists of addresses."""

import zlib
from typing import NamedTuple, NoReturn
from xml.parsers import expat

ADDRESSES = 1_000
LONGEST = 2_048

_ROOTS = ("urlset", "sitemapindex")
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_BEGINS = b"\x1f\x8b"


class Sitemap(NamedTuple):
    pages: list[str]
    sitemaps: list[str]


class BadSitemap(Exception):
    pass


def read_sitemap(data: bytes, most: int) -> Sitemap:
    """Takes at most `most` decompressed bytes. A file that is cut off gives what comes before the
    cut. Raises BadSitemap if it is no sitemap, or declares entities."""
    plain = _gunzipped(data, most) if data.startswith(_GZIP_BEGINS) else data[:most]
    if plain.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return _Reader().read(plain)
    if lines := _lines(plain):
        return Sitemap(lines, [])
    raise BadSitemap("The file is no sitemap.")


def _gunzipped(data: bytes, most: int) -> bytes:
    try:
        return zlib.decompressobj(_GZIP).decompress(data, most)
    except zlib.error as error:
        raise BadSitemap("The sitemap is not valid gzip.") from error


def _lines(data: bytes) -> list[str]:
    lines = (line.strip() for line in data.decode(errors="replace").splitlines())
    found = [line for line in lines if line.startswith(("http://", "https://"))]
    return found[:ADDRESSES]


class _Reader:
    """Collects the text of `loc` elements. A document type is refused, because it could declare
    entities that expand to gigabytes, or that name files."""

    def __init__(self) -> None:
        self._found = Sitemap([], [])
        self._has_root = False
        self._path: list[str] = []
        self._text: list[str] = []
        self._length = 0
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = _refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._hear

    def read(self, data: bytes) -> Sitemap:
        try:
            # Not final: the end may be missing.
            self._parser.Parse(data, False)
        except (expat.ExpatError, LookupError, ValueError) as error:
            if not (self._found.pages or self._found.sitemaps):
                raise BadSitemap("The sitemap is not valid XML.") from error
        if not self._has_root:
            raise BadSitemap("The sitemap is empty.")
        return self._found

    def _start(self, name: str, attributes: object) -> None:
        plain = name.rpartition(":")[2].lower()
        if not self._has_root and plain not in _ROOTS:
            raise BadSitemap("The file is no sitemap.")
        self._has_root = True
        self._path.append(plain)
        self._text, self._length = [], 0

    def _hear(self, text: str) -> None:
        if self._length <= LONGEST:
            self._text.append(text)
            self._length += len(text)

    def _end(self, name: str) -> None:
        match self._path[-2:]:
            case ["url", "loc"]:
                self._keep(self._found.pages)
            case ["sitemap", "loc"]:
                self._keep(self._found.sitemaps)
        self._path.pop()

    def _keep(self, place: list[str]) -> None:
        address = "".join(self._text).strip()
        if address and len(address) <= LONGEST and len(place) < ADDRESSES:
            place.append(address)


def _refuse(*_: object) -> NoReturn:
    raise BadSitemap("The sitemap has a document type, which is not allowed.")
