"""Sheets to submit, and a swimmer who is in all of them."""

import itertools
import zlib

from apps.heatsync.samples import make_meet, samples

MIB = 1_048_576

SHEETS = samples()
BAD = ("truncated.pdf", SHEETS.pop("truncated.pdf"))
SWIMMER = make_meet(1).busiest
# A psych sheet has no heats and lanes, and the relays have other swimmers.
for name in ("psych-sheet.pdf", "relays.pdf"):
    SHEETS.pop(name)


numbers = itertools.count(1)


def fresh(pdf: bytes) -> bytes:
    """The same sheet with a new checksum, so that it is read and not taken from the cache."""
    return pdf + b"%% %d\n" % next(numbers)


def all_fresh() -> list[tuple[str, bytes]]:
    return [(name, fresh(pdf)) for name, pdf in SHEETS.items()]


def fifteen() -> list[tuple[str, bytes]]:
    """The maximum number of sheets of a batch, none of which is in the cache."""
    return [(f"{n}.pdf", fresh(SHEETS["two-columns.pdf"])) for n in range(15)]


def bomb() -> bytes:
    """A PDF of a few kilobytes, whose page decompresses to more memory than the reader may use."""
    packed = zlib.compress(compressed_zeros(1_536), 9)
    return pdf_of(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>",
        b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n%b\nendstream"
        % (len(packed), packed),
    )


def compressed_zeros(mebibytes: int) -> bytes:
    """Compresses one mebibyte and repeats the result, which is much faster than to compress all."""
    packing = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = packing.compress(bytes(MIB)) + packing.flush(zlib.Z_FULL_FLUSH)
    # The Adler-32 checksum of zeros depends only on their number.
    checksum = (mebibytes * MIB % 65_521) << 16 | 1
    return b"\x78\xda" + block * mebibytes + packing.flush() + checksum.to_bytes(4, "big")


def pdf_of(*objects: bytes) -> bytes:
    """Builds a PDF. The first object is the catalogue."""
    body, offsets = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, text)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    count = len(objects) + 1
    return (
        body
        + b"xref\n0 %d\n0000000000 65535 f \n%b" % (count, table)
        + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (count, len(body))
    )
