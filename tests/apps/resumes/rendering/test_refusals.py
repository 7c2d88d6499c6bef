"""Nothing outside the document is opened, whatever its fields say."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.apps.resumes.rendering.papers import DESIGNS, document, links, made, reader, text_of

MARKUP = (
    '<img src="{}">',
    '<link rel="stylesheet" href="{}"><link rel="attachment" href="{}">',
    "<style>@import url({}); @font-face {{ font-family: x; src: url({}) }} body {{ background: url({}) }}</style>",
    '"><svg><image href="{}"/></svg><object data="{}"></object><iframe src="{}"></iframe>',
    "</style></title><script src='{}'></script>{{{{ 7 * 7 }}}}",
    "![x]({})",
)
# Dates and e-mail addresses are refused before.
CHECKED = re.compile("date|email", re.IGNORECASE)


class Listener:
    def __init__(self) -> None:
        self.requests = requests = list[str]()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.append(self.path)
                self.send_response(302)
                self.send_header("Location", "file:///etc/passwd")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/x.png"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.server.shutdown()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.txt"
    file.write_text("the-secret")
    return file


def everywhere(text: str, value: Any) -> Any:
    """The same document with `text` in every field that may have any text."""
    match value:
        case dict():
            return {
                name: it if CHECKED.search(name) else everywhere(text, it)
                for name, it in value.items()
            }
        case list():
            return [everywhere(text, it) for it in value]
        case str():
            return text
        case _:
            return value


@pytest.mark.parametrize("markup", MARKUP)
@pytest.mark.parametrize("design", DESIGNS)
def test_no_field_is_fetched(design: str, markup: str, listener: Listener, secret: Path):
    for url in (listener.url, secret.as_uri()):
        text = markup.format(*[url] * 3)
        data = everywhere(text, document("one-page"))
        data["basics"]["image"] = url
        pdf = made(data, template=design, metadata={"title": text[:400]}).pdf
        assert "the-secret" not in text_of(pdf)
    assert listener.requests == []


def test_markup_stays_text():
    text = "<script>alert(1)</script> &amp; <b>x</b> {{ 7 * 7 }} {% raw %}"
    shown = " ".join(text_of(made({"basics": {"name": "X", "summary": text}}).pdf).split())
    assert text in shown


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "ftp://example.com/x",
        "#end",
    ],
)
def test_other_addresses_are_text_and_no_links(url: str):
    data = {
        "basics": {"name": "X", "url": url, "summary": f"[click]({url})"},
        "work": [{"name": "Y", "url": url}],
    }
    pdf = made(data).pdf
    assert all("/Annots" not in page for page in reader(pdf).pages)
    assert f"[click]({url})" in "".join(text_of(pdf).split())


def test_web_and_mail_addresses_are_links():
    data = {
        "basics": {
            "name": "X",
            "url": "https://example.com/me/",
            "email": "x@example.com",
            "summary": "See [here](http://example.com/a_(b)).",
        }
    }
    pdf = made(data).pdf
    assert {link["/A"]["/URI"] for link in links(reader(pdf))} == {
        *("https://example.com/me/", "mailto:x@example.com", "http://example.com/a_(b)"),
    }
    assert "example.com/me ·" in text_of(pdf) or "example.com/me\n" in text_of(pdf)


def test_nothing_of_a_document_is_logged(caplog: pytest.LogCaptureFixture):
    with caplog.at_level("DEBUG"):
        made(
            {"basics": {"name": "Secret \U000f0000", "url": "http://[", "summary": "<a href='::'>"}}
        )
    assert "ecret" not in caplog.text
    assert "\U000f0000" not in caplog.text
