import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from apps.resumes import rendering
from apps.resumes.document import read
from apps.resumes.options import read_options
from apps.resumes.rendering import (
    MAX_PAGES,
    NoSuchPage,
    RendererMissing,
    TooManyPages,
    TooManyParts,
    check_fonts,
    engine,
    fonts,
    picture_of,
    pipeline,
)
from apps.resumes.rendering.fitting import require_fitting
from apps.resumes.rendering.prose import TOO_MANY_MARKS
from apps.resumes.rendering.view import view_of
from tests.apps.resumes.rendering.papers import DESIGNS, document, made, paper, text_of

ROOT = Path(__file__).parents[4]
GIGABYTE = 1_000_000_000
CHINESE = "".join(map(chr, range(0x4E00, 0x9A00)))
PAGES = [{"name": "a", "summary": CHINESE[:19_500]} for _ in range(4)]
ENTRY = {"name": "漢", "position": "字", "location": "国", "url": "b.cc", "summary": "a"}
ENTRY |= {"startDate": "2001", "endDate": "2002"}
ITEMS = [{"name": "a", "highlights": ["字"] * 480} for _ in range(4)]
MARKS = [{"name": "a", "summary": "*a* " * 4_990}]
# Nearly as many parts, pages and marks as there may be, with every Chinese character.
LARGEST = (PAGES + [ENTRY] * 255, PAGES + ITEMS, PAGES + MARKS + ITEMS[:3] + [ENTRY] * 35)

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


# As a child of the server does it: what is prepared in advance does not count against the limit.
MEASURE_LARGEST = """
import json, re, resource, sys
from apps.resumes.document import read
from apps.resumes.options import read_options
from apps.resumes.rendering import render
from apps.resumes.tasks import MEMORY, prepare
prepare()
resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
options = read_options({"template": "serif", "margins": 0, "pageSize": "Legal"})
pages = render(read(json.load(sys.stdin)), options, lambda _: None).page_count
print(pages, re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
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


def test_the_three_largest_renders_at_once_take_less_than_a_gigabyte():
    """Memory that they share, such as fonts, counts for each of them."""
    with ThreadPoolExecutor(3) as threads:
        measured = list(threads.map(measured_largest, LARGEST))
    assert all(30 < pages <= MAX_PAGES for pages, _ in measured)
    assert sum(peak for _, peak in measured) < GIGABYTE


def measured_largest(work: list[Any]) -> tuple[int, int]:
    """The number of pages, and the largest number of bytes that the process has had in memory."""
    ended = subprocess.run(
        [sys.executable, "-c", MEASURE_LARGEST],
        cwd=ROOT,
        input=json.dumps({"work": work}).encode(),
        capture_output=True,
        check=True,
    )
    pages, kilobytes = map(int, ended.stdout.split())
    return pages, 1_024 * kilobytes


@pytest.mark.parametrize(("name", "most"), [("five-pages", 130), ("many-scripts", 200)])
def test_an_ordinary_document_takes_little_memory(name: str, most: int):
    """In megabytes. Fonts with all Chinese characters have 20 MB each."""
    assert measured(name)["peak"] < most


def test_fonts_of_earlier_documents_do_not_stay_in_memory():
    made({"basics": {"name": "漢字", "summary": CHINESE[:2_000]}})
    maps = Path("/proc/self/maps").read_text()
    assert "CJK" not in maps


def test_another_process_writes_the_same_bytes_and_loads_the_layout_late():
    first, second = measured("two-pages", "1"), measured("two-pages", "2")
    assert first["hash"] == second["hash"]
    assert first["early"] == []


def test_a_document_that_cannot_fit_is_refused_before_the_layout(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(pipeline, "load_engine")
    with pytest.raises(TooManyPages) as refusal:
        made({"work": [{"name": "a", "highlights": ["b"] * 400} for _ in range(10)]})
    assert refusal.value.code == "TOO_MANY_PAGES"


def test_a_document_that_takes_too_much_memory_is_refused_before_the_layout(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(engine, "lay_out", None)
    with pytest.raises(TooManyParts) as refusal:
        made({"work": [ENTRY] * 290})
    assert refusal.value.code == "TOO_MANY_PARTS"
    assert "4,000" in str(refusal.value)


def test_each_column_has_the_room_of_all_pages():
    skills = [{"name": "a", "keywords": ["b"]}] * 500
    lines = {"work": [{"name": "a", "highlights": ["b"] * 480} for _ in range(4)]}
    both = view_of(read(lines | {"skills": skills, "awards": [{"title": "c"}] * 500}))
    options = {name: read_options({"template": name, "margins": 1.9}) for name in DESIGNS}
    require_fitting(both, options["columns"])
    with pytest.raises(TooManyPages):
        require_fitting(both, options["minimal"])
    work = view_of(read({"work": lines["work"] * 2}))
    with pytest.raises(TooManyPages):
        require_fitting(work, options["columns"])


def test_after_many_marks_the_others_stay_text():
    found = made({"basics": {"name": "X", "summary": "*ab* " * 2_100}})
    assert found.warnings == (TOO_MANY_MARKS,)
    assert text_of(found.pdf).count("*") == 2 * 100
    assert made({"basics": {"name": "X", "summary": "*ab* " * 2_000}}).warnings == ()


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
