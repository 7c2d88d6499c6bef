"""The picture of a resume. Nothing is fetched: only a picture inside the document is used."""

import re
from base64 import b64decode
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from apps.resumes.document.resume import Resume

MAX_IMAGE_BYTES = 768 * 1024
MEDIA_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
# Not a registered type, but what many programs write.
JPG = "image/jpg"

DATA_URL = re.compile(
    r"data:(?P<type>[^,;]*)(?P<parameters>(?:;[^,;]*)*),(?P<data>.*)", re.I | re.S
)
SPACE = re.compile(rb"\s+")


class EmbeddedImage(NamedTuple):
    """`data` has not been decoded: it may be anything that its author called an image."""

    media_type: str
    data: bytes


class ImageWarning(StrEnum):
    """Why the picture of a resume is not shown."""

    NOT_EMBEDDED = "IMAGE_NOT_EMBEDDED"
    TYPE_NOT_SUPPORTED = "IMAGE_TYPE_NOT_SUPPORTED"
    UNREADABLE = "IMAGE_UNREADABLE"
    TOO_LARGE = "IMAGE_TOO_LARGE"


def image_of(resume: Resume) -> EmbeddedImage | ImageWarning | None:
    """The picture inside the document, why it is left out, or None if there is none."""
    text = resume.basics.image
    if text is None:
        return None
    url = DATA_URL.fullmatch(text)
    if url is None:
        return ImageWarning.NOT_EMBEDDED
    media_type = media_type_of(url["type"])
    if media_type is None:
        return ImageWarning.TYPE_NOT_SUPPORTED
    return embedded(media_type, bytes_of(url["parameters"], url["data"]))


def embedded(media_type: str, data: bytes) -> EmbeddedImage | ImageWarning:
    if not data:
        return ImageWarning.UNREADABLE
    if len(data) > MAX_IMAGE_BYTES:
        return ImageWarning.TOO_LARGE
    return EmbeddedImage(media_type, data)


def media_type_of(text: str) -> str | None:
    media_type = text.strip().lower().replace(JPG, "image/jpeg")
    return media_type if media_type in MEDIA_TYPES else None


def bytes_of(parameters: str, text: str) -> bytes:
    """What a data URL contains; nothing if it is malformed."""
    data = unquote_to_bytes(text)
    if not parameters.lower().endswith(";base64"):
        return data
    try:
        return b64decode(SPACE.sub(b"", data), validate=True)
    except ValueError:
        return b""
