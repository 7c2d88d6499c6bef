"""The picture of a resume: decoded within bounds, cropped, and encoded again for its place on the
page. So the PDF contains no metadata of the camera, such as the place where it was taken."""

import struct
import warnings
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from apps.resumes.document import EmbeddedImage, ImageWarning, Resume, image_of
from apps.resumes.options import Quality

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
# Checked before anything is decoded: 40 MB, and the same for a copy.
MAX_PIXELS = 10_000_000
# Faces are above the middle of most pictures.
CENTRE = (0.5, 0.35)
MILLIMETRES_PER_INCH = 25.4

WARNINGS = {
    ImageWarning.NOT_EMBEDDED: "The picture was left out because it is not in the document itself. "
    "Nothing is loaded from other places: embed the picture as a data URL.",
    ImageWarning.TYPE_NOT_SUPPORTED: "The picture was left out because of its type. Use PNG, JPEG, "
    "GIF or WebP.",
    ImageWarning.UNREADABLE: "The picture was left out because it cannot be read. Save it again as "
    "PNG or JPEG.",
    ImageWarning.TOO_LARGE: "The picture was left out because it is too large. Use one of at most "
    f"768 KB and {MAX_PIXELS // 1_000_000} million pixels.",
}
FIRST_FRAME = "The picture is animated. The PDF shows its first frame."


class Detail(NamedTuple):
    """How much of a picture is kept: pixels per inch, and the quality of JPEG."""

    dpi: int
    jpeg: int


DETAILS = {
    Quality.DRAFT: Detail(96, 60),
    Quality.NORMAL: Detail(192, 82),
    Quality.HIGH: Detail(300, 92),
}


class Photo(NamedTuple):
    """`data` is None if there is no picture to show."""

    data: bytes | None = None
    warning: str | None = None


def photo_of(resume: Resume, *, millimetres: float, quality: Quality, grey: bool) -> Photo:
    match image_of(resume):
        case None:
            return Photo()
        case ImageWarning() as reason:
            return Photo(warning=WARNINGS[reason])
        case EmbeddedImage(data=data):
            detail = DETAILS[quality]
            side = round(millimetres / MILLIMETRES_PER_INCH * detail.dpi)
            try:
                return prepared(data, side, detail.jpeg, mode="L" if grey else "RGB")
            except MemoryError:
                raise
            except TooManyPixels:
                return Photo(warning=WARNINGS[ImageWarning.TOO_LARGE])
            except Exception:
                # Pillow has no common error for data that are not what they claim to be.
                return Photo(warning=WARNINGS[ImageWarning.UNREADABLE])


class TooManyPixels(Exception):
    pass


def prepared(data: bytes, side: int, jpeg: int, mode: str) -> Photo:
    from PIL import Image, ImageOps

    with opened(data) as image:
        warning = FIRST_FRAME if is_animated(image) else None
        # A JPEG can be decoded at a fraction of its size. Others are made smaller at once, so that
        # there are few copies of a large picture.
        image.draft(mode, (2 * side, 2 * side))
        small = image.convert("RGBA") if image.mode in ("P", "PA") else image
        small = small.reduce(max(1, min(small.size) // (2 * side)))
        upright = flat(ImageOps.exif_transpose(small)).convert(mode)
    # A small picture is not enlarged: that would only add bytes.
    fitting = min(side, *upright.size)
    square = ImageOps.fit(upright, (fitting, fitting), Image.Resampling.LANCZOS, centering=CENTRE)
    file = BytesIO()
    square.info.clear()
    square.save(file, "JPEG", quality=jpeg, optimize=True)
    return Photo(file.getvalue(), warning)


def opened(data: bytes) -> "Image":
    """Has read no more than the header."""
    from PIL import Image

    if is_webp(data):
        require_pixels(*webp_size(data))
    with warnings.catch_warnings():
        # The limit of Pillow is higher.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            image = Image.open(BytesIO(data), formats=FORMATS)
        except Image.DecompressionBombError:
            raise TooManyPixels from None
    require_pixels(*image.size)
    return image


def require_pixels(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise TooManyPixels


def is_animated(image: "Image") -> bool:
    """Photos of phones (MPO) contain several pictures too, but are not animated."""
    return image.format in ("GIF", "WEBP", "PNG") and getattr(image, "is_animated", False)


def flat(image: "Image") -> "Image":
    """Transparent parts show the paper."""
    from PIL import Image

    if not image.has_transparency_data:
        return image
    layer = image.convert("RGBA")
    paper = Image.new("RGBA", layer.size, "white")
    paper.alpha_composite(layer)
    return paper


def is_webp(data: bytes) -> bool:
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def webp_size(data: bytes) -> tuple[int, int]:
    """Pillow reserves memory for all pixels before it says how many there are."""
    match data[12:16]:
        case b"VP8X":
            width, height = (int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
            return width + 1, height + 1
        case b"VP8L":
            bits = struct.unpack_from("<I", data, 21)[0]
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case _:
            raise ValueError
