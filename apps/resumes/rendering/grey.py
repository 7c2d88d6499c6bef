"""Replaces every colour of a PDF by a grey of the same lightness, before the PDF is written.

WeasyPrint writes colours as operators of content streams (`0.1 0.2 0.3 rg`), each of them a
separate item, and images as streams of their own.
"""

import re
import struct
import zlib
from io import BytesIO
from typing import TYPE_CHECKING

import pydyf

if TYPE_CHECKING:
    from PIL.Image import Image

NUMBER = rb"(-?\d*\.?\d+)"
COLOUR = re.compile(rb" ".join([NUMBER] * 3) + rb" (rg|RG)")
GREY = {b"rg": b"g", b"RG": b"G"}
# As Pillow converts images, so that both match.
WEIGHTS = (0.299, 0.587, 0.114)


def make_grey(pdf: pydyf.PDF) -> None:
    for each in pdf.objects:
        if isinstance(each, pydyf.Stream):
            if each.extra.get("ColorSpace") == "/DeviceRGB":
                make_image_grey(each)
            elif "Length1" not in each.extra:
                each.stream = [grey_operator(item) for item in each.stream]
        elif isinstance(each, pydyf.Dictionary):
            # Declared for every document, although nothing uses them.
            for name in ("lab-d50", "lab-d65"):
                each.pop(name, None)


def grey_operator(item: object) -> object:
    if not isinstance(item, bytes) or not (colour := COLOUR.fullmatch(item)):
        return item
    *channels, operator = colour.groups()
    lightness = sum(weight * float(it) for weight, it in zip(WEIGHTS, channels, strict=True))
    return f"{lightness:.4f}".rstrip("0").rstrip(".").encode() + b" " + GREY[operator]


def make_image_grey(image: pydyf.Stream) -> None:
    """Images of colour fonts, such as emoji. The picture of the resume is grey already."""
    decoded = decoded_image(image).convert("L")
    image.stream = [zlib.compress(decoded.tobytes())]
    image.compress = False
    image.extra |= {"ColorSpace": "/DeviceGray", "Filter": "/FlateDecode"}
    image.extra.pop("DecodeParms", None)


def decoded_image(image: pydyf.Stream) -> "Image":
    from PIL import Image

    data = b"".join(image.stream)
    if image.extra["Filter"] != "/FlateDecode":
        return Image.open(BytesIO(data))
    # Its data are those of a PNG: rows with a filter each.
    size = struct.pack(">IIBBBBB", image.extra["Width"], image.extra["Height"], 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", size) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    return Image.open(BytesIO(b"\x89PNG\r\n\x1a\n" + chunks))


def chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
