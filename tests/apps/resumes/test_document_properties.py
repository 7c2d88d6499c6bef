"""Any JSON is read or refused; what is read stays the same when it is read again."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from apps.resumes.document import InvalidDocument, Resume, read, with_current_names
from apps.resumes.document.names import KNOWN, SECTIONS

MARK = "Zanzibar"

texts = st.text(max_size=12) | st.sampled_from(["2014-05", "present", "https://a.example", MARK])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
names = st.sampled_from(sorted(KNOWN)) | st.just(MARK) | st.text(max_size=4)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=5),
    max_leaves=25,
)
entries = st.lists(st.dictionaries(names, values, max_size=6), max_size=3)
near_documents = st.dictionaries(st.sampled_from(sorted(SECTIONS)), values | entries, max_size=6)

dates = st.dates().filter(lambda day: 1000 <= day.year < 3000).map(str)
partial_dates = st.builds(lambda day, length: day[:length], dates, st.sampled_from([4, 7, 10]))
visible = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=20)
works = st.fixed_dictionaries(
    {},
    optional={
        "name": visible,
        "position": visible,
        "url": visible,
        "startDate": partial_dates,
        "endDate": partial_dates,
        "summary": visible,
        "highlights": st.lists(visible, max_size=3),
    },
)


@given(near_documents | values)
@settings(max_examples=400)
def test_any_json_is_read_or_refused_without_a_quotation(document: Any):
    try:
        resume = read(document)
    except InvalidDocument as error:
        assert MARK not in str(error)
        assert error.path.startswith("$")
    else:
        assert isinstance(resume, Resume)


@given(near_documents)
@settings(max_examples=300)
def test_a_resume_written_as_json_resume_is_the_same_resume(document: Any):
    try:
        resume = read(document)
    except InvalidDocument:
        return
    text = json.dumps(resume.as_json())
    assert read(json.loads(text)) == resume
    assert Resume.model_validate_json(resume.model_dump_json()) == resume


@given(near_documents)
@settings(max_examples=300)
def test_a_document_with_current_names_is_the_same_resume_and_stays_the_same(document: Any):
    try:
        resume = read(document)
    except InvalidDocument:
        return
    current = with_current_names(document)
    assert read(current) == resume
    assert with_current_names(current) == current
    assert MARK not in document or current[MARK] == document[MARK]


@given(st.lists(works, max_size=4))
def test_documents_that_the_schema_allows_are_read(entries: list[dict[str, Any]]):
    resume = read({"work": entries})
    shown = [one for one in entries if any(has_text(value) for value in one.values())]
    assert len(resume.work) <= len(shown)
    assert [str(one.start_date) for one in resume.work if one.start_date] == [
        one["startDate"] for one in entries if "startDate" in one
    ]


def has_text(value: str | list[str]) -> bool:
    return bool(value.strip() if isinstance(value, str) else any(one.strip() for one in value))
