import base64
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from apps.resumes.rendering.photo import FIRST_FRAME
from tests.apps.resumes.rendering.papers import Paper, made, paper, reader

RED, BLUE = Image.new("RGB", (600, 400), "red"), Image.new("RGB", (600, 400), "blue")


def url(image: Image.Image, kind: str, **options: Any) -> str:
    file = BytesIO()
    image.save(file, kind, **options)
    return data_url(file.getvalue(), f"image/{kind.lower()}")


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def shown(source: str, **options: Any) -> tuple[Image.Image | None, tuple[str, ...]]:
    rendered = made({"basics": {"name": "X", "image": source}}, **options)
    images = reader(rendered.pdf).pages[0].images
    return (images[0].image if images else None), rendered.warnings


def colour(image: Image.Image, at: tuple[int, int]) -> tuple[int, int, int]:
    found: Any = image.convert("RGB").getpixel(at)
    return found


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_pictures_of_common_types_are_shown(kind: str):
    image, warnings = shown(url(RED, kind))
    assert image
    assert warnings == ()
    red, green, blue = colour(image, (50, 50))
    assert red > 240 > 20 > green + blue


@pytest.mark.parametrize(("quality", "side"), [("draft", 102), ("normal", 204), ("high", 319)])
def test_quality_is_the_resolution(quality: str, side: int):
    image, _ = shown(url(RED, "JPEG"), quality=quality)
    assert image
    assert image.size == (side, side)


def test_better_quality_has_more_bytes():
    sizes = [len(paper("two-pages", quality=it).pdf) for it in ("draft", "normal", "high")]
    assert sizes == sorted(set(sizes))


def test_a_small_picture_is_not_enlarged():
    image, _ = shown(url(RED.resize((60, 50)), "PNG"))
    assert image
    assert image.size == (50, 50)


def test_transparent_parts_show_the_paper():
    image, _ = shown(url(Image.new("RGBA", (300, 300), (0, 0, 255, 0)), "PNG"))
    assert image
    assert colour(image, (9, 9)) == (255, 255, 255)


def test_a_photo_is_turned_upright_and_loses_what_the_camera_noted():
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "at home"
    wide = Image.new("RGB", (400, 200), "red")
    wide.paste(BLUE.resize((200, 200)), (200, 0))
    source = url(wide, "JPEG", exif=exif)
    image, _ = shown(source)
    assert image
    # The left half is now the upper one.
    assert colour(image, (100, 5))[0] > 200
    assert colour(image, (100, 195))[2] > 200
    assert b"at home" not in made({"basics": {"image": source}}).pdf


@pytest.mark.parametrize("kind", ["GIF", "WEBP"])
def test_of_an_animation_the_first_frame_is_shown(kind: str):
    image, warnings = shown(url(RED, kind, save_all=True, append_images=[BLUE]))
    assert image
    assert colour(image, (9, 9))[0] > 240
    assert warnings == (FIRST_FRAME,)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("https://example.com/me.png", "not in the document itself"),
        ("me.png", "not in the document itself"),
        ("file:///etc/passwd", "not in the document itself"),
        ("data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>", "because of its type"),
        (data_url(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), "cannot be read"),
        (data_url(b"\x89PNG\r\n\x1a\nnot one"), "cannot be read"),
        (url(RED, "JPEG")[:900], "cannot be read"),
        (url(RED.resize((9, 9)), "TIFF").replace("tiff", "png"), "cannot be read"),
        (url(Image.new("L", (4_000, 4_000)), "PNG"), "too large"),
        (url(Image.new("1", (20_000, 20_000)), "PNG"), "too large"),
        (url(Image.new("L", (8_000, 4_000)), "GIF"), "too large"),
        (url(Image.new("L", (4_000, 4_000)), "WEBP"), "too large"),
        (url(Image.new("L", (4_000, 4_000)), "WEBP", lossless=True), "too large"),
    ],
)
def test_what_cannot_be_shown_is_left_out_with_a_warning(source: str, reason: str):
    image, warnings = shown(source)
    assert image is None
    assert [reason in warning for warning in warnings] == [True]


def test_pixels_are_counted_before_they_are_decoded(monkeypatch: pytest.MonkeyPatch):
    source = url(Image.new("RGB", (4_000, 4_000)), "WEBP")

    def decode(*_: Any, **__: Any) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(Image, "open", decode)
    assert "too large" in made({"basics": {"image": source}}).warnings[0]


def test_every_design_shows_the_picture():
    for design in ("minimal", "columns", "compact", "serif", "modern"):
        made_paper: Paper = paper("two-pages", design)
        assert len(made_paper.reader().pages[0].images) == 1
