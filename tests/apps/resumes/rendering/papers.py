"""Documents and their PDFs. A PDF is made once for all tests of a process."""

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from io import BytesIO
from typing import Any

import pypdf
import pytest

from apps.resumes.document import read
from apps.resumes.options import TEMPLATES, read_options
from apps.resumes.rendering import Rendered, pipeline, render
from apps.resumes.samples import SAMPLES, sample
from tests.apps.resumes.jsonresume import fixture

STRANGERS = ("jrs_jane-fullstacker", "jrs_jane-incomplete", "jrs_john-doe", "jsonresume_sample")
DESIGNS = TEMPLATES
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"

# What people leave out, and what is too long.
ODD = {
    "basics": {
        "name": "Maximiliana-Konstantinopolitana Featherstonehaugh-Wolfeschlegelsteinhausen",
        "label": f"Principal {LONG} consultant",
        "email": "a.very.long.address.that.does.not.end.soon@subdomain.of.a.company.example",
        "url": "https://www.example.com/a/very/long/path/" + "and/on/" * 12,
        "summary": "a" * 300 + " and then\n\n- one\n- two\n\nLast paragraph.",
        "profiles": [{"network": "GitHub"}, {"username": "only"}, {"url": "https://example.com/p"}],
    },
    "work": [
        {"position": "Only a position"},
        {"name": "Only a company", "startDate": "2010"},
        {"summary": "Only a summary."},
        {"startDate": "2001-02", "endDate": "2003-04"},
        {"url": "https://example.com/only-an-address"},
        {"name": LONG, "position": LONG, "location": LONG, "highlights": ["", LONG * 3, "x"]},
        {},
    ],
    "education": [{"area": "Physics"}, {"studyType": "PhD", "institution": "X"}],
    "skills": [{"name": "Skill 1"}, {"name": "Skill 2", "level": "Master"}, {"keywords": ["k"]}],
    "languages": [{"fluency": "Native"}],
    "interests": [{}],
    "references": [{"name": "Someone"}, {"reference": "Only words."}],
    "awards": [],
    "publications": [{"summary": "only a summary"}],
    "certificates": [{"date": "2020"}],
}
FORTY = {
    "basics": {"name": "Forty Skills"},
    "skills": [{"name": f"Skill{n}", "keywords": ["alpha", "beta"]} for n in range(40)],
}
OWN = {"odd": ODD, "forty": FORTY, "empty": {}}
DOCUMENTS = (*SAMPLES, *STRANGERS, *OWN)
LEFT_TO_RIGHT = tuple(name for name in DOCUMENTS if name != "right-to-left")


def document(name: str) -> dict[str, Any]:
    if name in OWN:
        return OWN[name]
    if name in SAMPLES:
        return sample(name)
    return fixture(f"{name}.json")


def nothing(_: str) -> None: ...


def made(data: dict[str, Any], **options: Any) -> Rendered:
    return render(read(data), read_options(options), nothing)


class Paper:
    """A PDF, and the HTML that it was made from."""

    def __init__(self, name: str, options: dict[str, Any]):
        pages = list[str]()

        def remembering(*args: Any, **kwargs: Any) -> str:
            pages.append(html_of(*args, **kwargs))
            return pages[-1]

        html_of = pipeline.html_of
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pipeline, "html_of", remembering)
            self.rendered = made(document(name), **options)
        self.html = pages[-1]

    @property
    def pdf(self) -> bytes:
        return self.rendered.pdf

    def text(self, *mode: str) -> str:
        return text_of(self.pdf, *mode)

    def reader(self) -> pypdf.PdfReader:
        return reader(self.pdf)


@cache
def _paper(name: str, options: str) -> Paper:
    return Paper(name, json.loads(options))


def paper(name: str, design: str = "minimal", **options: Any) -> Paper:
    return _paper(name, json.dumps({"template": design, **options}, sort_keys=True))


def reader(pdf: bytes) -> pypdf.PdfReader:
    return pypdf.PdfReader(BytesIO(pdf))


def links(file: pypdf.PdfReader) -> Iterator[Any]:
    for page in file.pages:
        annotations: Any = page.get("/Annots", [])
        yield from (each.get_object() for each in annotations)


def text_of(pdf: bytes, *mode: str) -> str:
    """As pdftotext extracts it: by default in reading order, with `-raw` as it is written."""
    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        file.write(pdf)
        file.flush()
        command = ["pdftotext", *mode, file.name, "-"]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode()


def operators(pdf: bytes) -> Iterator[str]:
    """All operators of the pages, of the forms on them, and of patterns."""
    file = reader(pdf)
    for page in file.pages:
        content = page.get_contents()
        assert content is not None
        yield from (operator.decode() for _, operator in content.operations)


class Words(HTMLParser):
    """The text of a page, apart from that of the narrow column."""

    def __init__(self, html: str):
        super().__init__()
        self._open = list[str]()
        self._parts: dict[bool, list[str]] = {False: [], True: []}
        self.feed(html)
        self.main, self.side = ("".join(self._parts[is_side]) for is_side in (False, True))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("img", "br", "meta"):
            self._open.append(dict(attrs).get("class") or tag)

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if "title" not in self._open:
            self._parts["side" in self._open].append(data)


# What stands between texts, or says where lines may end.
IGNORED = re.compile("[\\s·•—\u2060\u200b]+")
NUMBER = re.compile(r".* · \d+/\d+")


def squeezed(text: str) -> str:
    return IGNORED.sub("", text)


def without_numbers(page: str) -> str:
    return "\n".join(line for line in page.split("\n") if not NUMBER.fullmatch(line))
