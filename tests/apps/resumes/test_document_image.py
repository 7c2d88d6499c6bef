"""The picture of a resume."""

from base64 import b64encode
from urllib.parse import quote

import pytest

from apps.resumes.document import Basics, EmbeddedImage, ImageWarning, Resume, image_of, read
from apps.resumes.document.image import MAX_IMAGE_BYTES

DATA = bytes(range(256))
BASE64 = b64encode(DATA).decode()


def image(text: str | None):
    return image_of(read({"basics": {"image": text}}))


@pytest.mark.parametrize(
    ("text", "media_type"),
    [
        (f"data:image/png;base64,{BASE64}", "image/png"),
        (f"data:image/jpeg;base64,{BASE64}", "image/jpeg"),
        (f"data:image/jpg;base64,{BASE64}", "image/jpeg"),
        (f"data:image/gif;base64,{BASE64}", "image/gif"),
        (f"data:image/webp;base64,{BASE64}", "image/webp"),
        (f"DATA:IMAGE/PNG;charset=utf-8;BASE64,{BASE64}", "image/png"),
        (f"data:image/png;base64,{BASE64[:100]}\n {BASE64[100:]}", "image/png"),
        (f"data:image/png;base64,{quote(BASE64, safe='')}", "image/png"),
        (f"data:image/png,{quote(DATA)}", "image/png"),
    ],
)
def test_pictures_inside_the_document(text: str, media_type: str):
    assert image(text) == EmbeddedImage(media_type, DATA)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("https://example.com/me.png", ImageWarning.NOT_EMBEDDED),
        ("file:///etc/passwd", ImageWarning.NOT_EMBEDDED),
        ("jane_doe.png", ImageWarning.NOT_EMBEDDED),
        ("data:", ImageWarning.NOT_EMBEDDED),
        (f"data:image/svg+xml;base64,{BASE64}", ImageWarning.TYPE_NOT_SUPPORTED),
        (f"data:text/html;base64,{BASE64}", ImageWarning.TYPE_NOT_SUPPORTED),
        (f"data:;base64,{BASE64}", ImageWarning.TYPE_NOT_SUPPORTED),
        (f"data:image/jpg/png;base64,{BASE64}", ImageWarning.TYPE_NOT_SUPPORTED),
        ("data:image/png;base64,", ImageWarning.UNREADABLE),
        ("data:image/png;base64,%%%", ImageWarning.UNREADABLE),
        ("data:image/png;base64,AAA", ImageWarning.UNREADABLE),
        ("data:image/png;base64,AA*A", ImageWarning.UNREADABLE),
    ],
)
def test_pictures_that_are_left_out(text: str, warning: ImageWarning):
    assert image(text) == warning


def test_no_picture():
    assert image(None) is None
    assert image("") is None
    assert image_of(Resume()) is None


def test_the_bytes_of_a_picture_are_bounded():
    def of_size(size: int):
        url = f"data:image/png;base64,{b64encode(bytes(size)).decode()}"
        return image_of(Resume(basics=Basics(image=url)))

    assert isinstance(of_size(MAX_IMAGE_BYTES), EmbeddedImage)
    assert of_size(MAX_IMAGE_BYTES + 1) == ImageWarning.TOO_LARGE


def test_the_old_name_of_a_picture():
    resume = read({"basics": {"picture": f"data:image/gif;base64,{BASE64}"}})
    assert image_of(resume) == EmbeddedImage("image/gif", DATA)
