import json
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from apps.resumes import rendering
from apps.resumes.rendering import (
    NoSuchPage,
    RendererMissing,
    TooManyPages,
    check_fonts,
    fonts,
    picture_of,
    pipeline,
)
from tests.apps.resumes.rendering.papers import document, made, paper

ROOT = Path(__file__).parents[4]
PLAIN, CHINESE = 130, 260

MEASURE = """
import hashlib, json, re, sys
from apps.resumes.document import read
from apps.resumes.options import read_options
from apps.resumes.rendering import render
from apps.resumes.samples import sample
early = [name for name in sys.modules if name.split(".")[0] in ("weasyprint", "jinja2", "PIL")]
result = render(read(sample(sys.argv[1])), read_options({"template": "serif"}), lambda _: None)
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024
print(json.dumps({"early": early, "peak": peak, "hash": hashlib.md5(result.pdf).hexdigest()}))
"""


def measured(name: str, seed: str = "0") -> dict[str, Any]:
    """A render in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", MEASURE, name],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        check=True,
    )
    return json.loads(ended.stdout)


@pytest.mark.parametrize(("name", "most"), [("five-pages", PLAIN), ("many-scripts", CHINESE)])
def test_three_renders_at_once_take_less_than_a_gigabyte(name: str, most: int):
    """In megabytes. Fonts with all Chinese characters have 20 MB each."""
    assert measured(name)["peak"] < most < 1_000 / 3


def test_another_process_writes_the_same_bytes_and_loads_the_layout_late():
    first, second = measured("two-pages", "1"), measured("two-pages", "2")
    assert first["hash"] == second["hash"]
    assert first["early"] == []


def test_a_document_that_cannot_fit_is_refused_before_the_layout(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(pipeline, "load_engine")
    with pytest.raises(TooManyPages) as refusal:
        made({"work": [{"name": "a", "highlights": ["b"] * 400} for _ in range(10)]})
    assert refusal.value.code == "TOO_MANY_PAGES"


def test_too_many_pages_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("apps.resumes.rendering.fitting.MAX_PAGES", 2)
    with pytest.raises(TooManyPages):
        made(document("five-pages"))


@pytest.mark.parametrize(
    "text",
    [
        *("a" * 20_000, "t" * 20_000, "ا" * 3_000, "漢字" * 10_000, "**a** " * 800),
        *("**" * 10_000, "[" * 20_000, "a" + "\u0301" * 10_000, "\u202ea\u202d" * 800),
    ],
    ids=["word", "ligatures", "arabic", "chinese", "marks", "stars", "links", "accents", "turns"],
)
@pytest.mark.timeout(90)
def test_hostile_text_is_rendered(text: str):
    """A layout of quadratic cost would take minutes."""
    assert made({"basics": {"name": "X", "summary": text}}).page_count


def test_pictures_of_pages():
    pdf = paper("two-pages").pdf
    image = Image.open(BytesIO(picture_of(pdf, 2, 340)))
    assert (image.format, image.size) == ("PNG", (340, 440))
    for page in (0, 3):
        with pytest.raises(NoSuchPage) as refusal:
            picture_of(pdf, page, 100)
        assert refusal.value.code == "NO_SUCH_PAGE"


class Without:
    """An importer for machines without Pango."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "apps.resumes.rendering.engine":
            raise OSError("cannot load library 'libpango-1.0-0'")


def test_without_pango_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "apps.resumes.rendering.engine", raising=False)
    monkeypatch.delattr(rendering, "engine", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Without(), *sys.meta_path])
    with pytest.raises(RendererMissing, match="bin/install-servers apps") as error:
        pipeline.load_engine()
    assert error.value.code == "RENDERER_MISSING"


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch):
    assert check_fonts() == ()
    monkeypatch.setattr(fonts, "fonts", lambda: ())
    assert "the font Inter" in check_fonts()
    assert "a font for Hebrew" in check_fonts()
    monkeypatch.setattr(fonts, "library", lambda *_: None)
    assert check_fonts() == (
        *("the library Pango", "the library PangoFT2", "the library HarfBuzz Subset"),
        "the library Fontconfig",
    )
