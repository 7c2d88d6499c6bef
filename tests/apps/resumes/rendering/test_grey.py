import zlib
from io import BytesIO

import pydyf
import pypdfium2
import pytest
from PIL import Image, ImageChops

from apps.resumes.rendering.grey import make_grey
from tests.apps.resumes.rendering.papers import DESIGNS, operators, paper

COLOUR = {"rg", "RG", "k", "K", "sc", "SC", "scn", "SCN", "cs", "CS", "sh"}


def pixels(pdf: bytes) -> Image.Image:
    return pypdfium2.PdfDocument(pdf)[0].render(scale=1).to_pil().convert("RGB")


def is_grey(image: Image.Image) -> bool:
    red, green, blue = image.split()
    return not (
        ImageChops.difference(red, green).getbbox() or ImageChops.difference(red, blue).getbbox()
    )


@pytest.mark.parametrize("design", DESIGNS)
def test_a_grey_pdf_has_neither_colours_nor_coloured_images(design: str):
    grey = paper("two-pages", design, colorMode="grayscale")
    assert not set(operators(grey.pdf)) & COLOUR
    assert {"g"} <= set(operators(grey.pdf))
    images = [image.image for page in grey.reader().pages for image in page.images]
    assert {image and image.mode for image in images} == {"L"}
    assert b"DeviceRGB" not in grey.pdf
    assert is_grey(pixels(grey.pdf))


@pytest.mark.parametrize("design", ["columns", "modern"])
def test_a_coloured_pdf_has_colours(design: str):
    assert not is_grey(pixels(paper("two-pages", design).pdf))


@pytest.mark.parametrize("design", DESIGNS)
def test_both_have_the_same_text(design: str):
    grey = paper("two-pages", design, colorMode="grayscale")
    assert grey.text() == paper("two-pages", design).text()


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_images_of_colour_fonts_become_grey(kind: str):
    image = Image.new("RGB", (20, 10), "red")
    image.paste("lime", (10, 0, 20, 10))
    file = BytesIO()
    image.save(file, kind, **({"quality": 100, "subsampling": 0} if kind == "JPEG" else {}))
    stream = pydyf.Stream(
        [file.getvalue() if kind == "JPEG" else idat(file.getvalue())],
        pydyf.Dictionary(
            {
                "ColorSpace": "/DeviceRGB",
                "Width": 20,
                "Height": 10,
                "Filter": "/DCTDecode" if kind == "JPEG" else "/FlateDecode",
            }
        ),
    )
    pdf = pydyf.PDF()
    pdf.add_object(stream)
    make_grey(pdf)
    assert (stream.extra["ColorSpace"], stream.extra["Filter"]) == ("/DeviceGray", "/FlateDecode")
    grey = Image.frombytes("L", (20, 10), zlib.decompress(b"".join(stream.stream)))
    # Red is dark and green is light.
    assert grey.getpixel((2, 5)) == pytest.approx(76, abs=1)
    assert grey.getpixel((17, 5)) == pytest.approx(150, abs=1)


def idat(png: bytes) -> bytes:
    at = png.index(b"IDAT")
    return png[at + 4 : at + 4 + int.from_bytes(png[at - 4 : at])]
