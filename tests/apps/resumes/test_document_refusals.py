"""What is refused, with which path, and that no message quotes the document."""

from typing import Any

import pytest

from apps.resumes.document import InvalidDocument, read
from apps.resumes.document.parse import MAX_BYTES, parse
from apps.resumes.document.read import MAX_CHARACTERS, MAX_TEXTS
from apps.resumes.document.structure import MAX_DEPTH
from apps.resumes.document.values import MAX_ITEMS, MAX_LINE, MAX_PROSE

SECRET = "Zanzibar"


def refusal(document: Any) -> InvalidDocument:
    with pytest.raises(InvalidDocument) as refused:
        read(document)
    return refused.value


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], "$"),
        ("text", "$"),
        (None, "$"),
        (7, "$"),
        ({"basics": SECRET}, "$.basics"),
        ({"basics": [SECRET]}, "$.basics"),
        ({"basics": {"name": 42}}, "$.basics.name"),
        ({"basics": {"name": {}}}, "$.basics.name"),
        ({"basics": {"name": True}}, "$.basics.name"),
        ({"basics": {"image": {"url": SECRET}}}, "$.basics.image"),
        ({"basics": {"phone": True}}, "$.basics.phone"),
        ({"basics": {"location": 7}}, "$.basics.location"),
        ({"basics": {"profiles": SECRET}}, "$.basics.profiles"),
        ({"basics": {"profiles": [SECRET]}}, "$.basics.profiles[0]"),
        ({"basics": {"profiles": {SECRET: 7.5}}}, None),
        ({"basics": {"profiles": {SECRET: ["x"]}}}, "$.basics.profiles.*.username"),
        ({"bio": {"picture": 1}}, "$.bio.picture"),
        ({"work": {}}, "$.work"),
        ({"work": SECRET}, "$.work"),
        ({"work": [SECRET]}, "$.work[0]"),
        ({"work": [[SECRET]]}, "$.work[0]"),
        ({"work": [{}, {"company": 1}]}, "$.work[1].company"),
        ({"work": [{"highlights": 7}]}, "$.work[0].highlights"),
        ({"work": [{"highlights": {"a": 1}}]}, "$.work[0].highlights"),
        ({"work": [{"highlights": ["ok", True]}]}, "$.work[0].highlights[1]"),
        ({"work": [{"highlights": ["ok", ["deep"]]}]}, "$.work[0].highlights[1]"),
        ({"work": [{"summary": {"html": SECRET}}]}, "$.work[0].summary"),
        ({"skills": {"front": ["end"]}}, "$.skills"),
        ({"skills": [{"keywords": [None, {"name": 7.0}, False]}]}, "$.skills[0].keywords[2]"),
        ({"meta": SECRET}, "$.meta"),
        ({"certifications": 1}, "$.certifications"),
        ({"name": SECRET, "dependencies": {}}, "$"),
    ],
)
def test_wrong_types(document: Any, path: str | None):
    if path is None:
        assert read(document)
        return
    error = refusal(document)
    assert error.path == path
    assert SECRET not in str(error)


@pytest.mark.parametrize(
    "date",
    [
        "soon",
        "2014-13",
        "2014-02-32",
        "2013-12-021",
        "14-05",
        "2014-13-45",
        "2014-5-",
        "99999",
        "5/6/2014",
        "Zanzibar 2014",
        "2014 - 2015",
        "Fall 2014",
        "2014-05-01T99",
        "３０１４",
        "0",
        0,
        14,
        2014.5,
        True,
        {"year": 2014},
        ["2014"],
        10**30,
        -2014,
    ],
)
def test_wrong_dates(date: Any):
    error = refusal({"work": [{"name": "A"}, {"name": "B"}, {"startDate": date}]})
    assert error.path == "$.work[2].startDate"
    assert SECRET not in str(error)


def test_present_is_only_an_end():
    assert refusal({"work": [{"startDate": "present"}]}).path == "$.work[0].startDate"
    assert refusal({"awards": [{"date": "present"}]}).path == "$.awards[0].date"


@pytest.mark.parametrize(
    "email",
    [
        SECRET,
        "a@b",
        "a b@c.example",
        "@c.example",
        "a@",
        "a@@c.example",
        "a@c..example",
        7,
        "a@c.example, b@c.example",
        "Tilda <a@c.example>",
        f"{'a' * 250}@c.example",
        "a@.example",
    ],
)
def test_wrong_e_mail_addresses(email: Any):
    error = refusal({"basics": {"email": email}})
    assert error.path == "$.basics.email"
    assert SECRET not in str(error)


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "\udc00", "\ud83d"])
@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("$.basics.name", lambda text: {"basics": {"name": text}}),
        ("$.work[1].highlights[0]", lambda text: {"work": [{}, {"highlights": [text]}]}),
        ("$.*[1]", lambda text: {"work": [], SECRET: [1, text]}),
        ("$.basics.*.*", lambda text: {"basics": {SECRET: {"Sansibar": text}}}),
        ("$.basics", lambda text: {"basics": {f"{SECRET}{text}": 1}}),
        ("$", lambda text: text),
    ],
)
def test_characters_that_cannot_be_stored(text: str, path: str, place: Any):
    error = refusal(place(text))
    assert error.path == path
    assert SECRET not in str(error)
    str(error).encode()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have(number: float):
    assert refusal({"education": [{"gpa": number}]}).path == "$.education[0].gpa"
    assert refusal({"work": [], "unknown": number}).path == "$.*"


def test_values_that_json_does_not_have():
    assert refusal({"work": (1, 2)}).path == "$.work"
    assert refusal({"basics": {1: "one"}}).path == "$.basics"


def test_depth_is_bounded_also_in_unknown_fields():
    assert read({"work": [], "unknown": nested(MAX_DEPTH - 1)})
    assert "deep" in refusal({"work": [], "unknown": nested(MAX_DEPTH + 1)}).reason
    assert "deep" in refusal(nested(100_000)).reason


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_lengths_are_bounded():
    assert read({"basics": {"name": "x" * MAX_LINE, "summary": "x" * MAX_PROSE}})
    assert refusal({"basics": {"name": "x" * (MAX_LINE + 1)}}).path == "$.basics.name"
    assert refusal({"basics": {"summary": "x" * (MAX_PROSE + 1)}}).path == "$.basics.summary"
    long = ["x" * (MAX_PROSE // 2)] * 3
    assert refusal({"basics": {"summary": long}}).path == "$.basics.summary"


def test_numbers_of_entries_are_bounded():
    for entries in ([{}], [{"name": "A"}], ["A"]):
        assert read({"skills": entries * MAX_ITEMS})
        assert refusal({"skills": entries * (MAX_ITEMS + 1)}).path == "$.skills"
    many = ["A"] * (MAX_ITEMS + 1)
    assert refusal({"skills": [{"keywords": many}]}).path == "$.skills[0].keywords"


def test_the_document_is_bounded():
    image = "data:image/png;base64,"
    full = {"basics": {"image": image}}
    room = MAX_BYTES - len('{"basics":{"image":""}}') - len(image)
    full["basics"]["image"] += "A" * room
    assert read(full)
    full["basics"]["image"] += "A"
    assert refusal(full).path == "$"
    # Bytes count, not characters.
    assert refusal({"work": [], "unknown": "é" * (MAX_BYTES // 2)}).path == "$"


def test_the_printed_text_is_bounded():
    entries = [{"summary": "x" * MAX_PROSE}] * (MAX_CHARACTERS // MAX_PROSE)
    assert read({"work": entries})
    assert refusal({"work": [*entries, {"name": "x"}]}).path == "$"
    words = {"keywords": ["x"] * 500}
    assert read({"skills": [words] * (MAX_TEXTS // 500)})
    assert refusal({"skills": [words] * (MAX_TEXTS // 500), "work": [{"name": "x"}]}).path == "$"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"Zanzibar",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b"\xff\xfe\xfd",
        b"{'a': 1}",
        b'{"basics": {},}',
        b"[" * 100000,
        b"1" * 5000,
        b'{"a": "' + b"x" * MAX_BYTES + b'"}',
    ],
)
def test_bytes_that_are_not_json(body: bytes):
    with pytest.raises(InvalidDocument) as refused:
        parse(body)
    assert refused.value.path == "$"
    assert SECRET not in str(refused.value)


def test_json_in_usual_encodings():
    text = '{"basics": {"name": "Ξανθίππη"}}'
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32-le"):
        assert read(parse(text.encode(encoding))).basics.name == "Ξανθίππη"
    assert read(parse(b'{"basics": {"name": "\\ud83d\\ude00"}}')).basics.name == "\U0001f600"


def test_the_place_of_a_syntax_error_is_named():
    with pytest.raises(InvalidDocument, match="line 2, column 3"):
        parse(b"{\n  basics: 1}")
