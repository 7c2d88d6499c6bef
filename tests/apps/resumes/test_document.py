"""Reading JSON Resume: the current schema, older names, and what exporters leave behind."""

import json
import pickle
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from apps.resumes.document import (
    InvalidDocument,
    Location,
    PartialDate,
    Profile,
    Resume,
    Skill,
    read,
)
from apps.resumes.document.names import KNOWN, SECTIONS, fields
from apps.resumes.document.node import Node
from apps.resumes.document.read import resume_of
from batchmill import InvalidInput, Permanent
from tests.apps.resumes.jsonresume import documents, fixture


def basics(**given: Any) -> Any:
    return read({"basics": given}).basics


def work(**given: Any) -> Any:
    return read({"work": [{"name": "Gearlight", **given}]}).work[0]


def test_the_sample_of_the_schema_is_read_completely():
    """Every text of the published sample is somewhere in the resume."""
    sample = fixture("jsonresume_sample.json")
    del sample["$schema"]
    assert read(sample).as_json() == without_empty(sample)


def without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_empty(item) for name, item in value.items() if item != ""}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


def test_every_published_document_is_read():
    found = {name: read(document) for name, document in documents().items()}
    assert len(found) == 4
    assert all(resume.basics.name for resume in found.values())


def test_the_model_has_every_field_of_the_schema():
    schema = fixture("jsonresume_schema.json")["properties"]
    for name, section in schema.items():
        if name != "$schema":
            compare(section, Resume.model_fields[name].annotation)


def compare(section: dict[str, Any], annotation: Any) -> None:
    section = section.get("items", section)
    model = next(
        part for part in [annotation, *getattr(annotation, "__args__", ())] if is_model(part)
    )
    assert section["properties"].keys() <= set(fields(model))


def is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)


def test_old_names_mean_the_same_as_new_ones():
    old = fixture("jrs_john-doe.json")
    new = read(
        {
            **old,
            "basics": renamed(old["basics"], website="url", picture="image"),
            "work": [renamed(old["work"][0], company="name", website="url")],
            "volunteer": [renamed(old["volunteer"][0], website="url")],
            "education": [renamed(old["education"][0], gpa="score")],
            "publications": [renamed(old["publications"][0], website="url")],
        }
    )
    assert read(old) == new
    assert new.work[0].name == "Company"
    assert new.work[0].url == "http://company.com"
    assert new.education[0].score == "4.0"
    assert new.basics.url == "http://johndoe.com"


def renamed(entry: dict[str, Any], **names: str) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in entry.items()}


def test_a_new_name_wins_over_an_old_one_unless_it_is_empty():
    assert work(name="New", company="Old").name == "New"
    assert read({"work": [{"name": "", "company": "Old"}]}).work[0].name == "Old"


def test_documents_from_before_the_first_version():
    """The sample that the schema's repository had in July 2014, with other words."""
    resume = read(
        {
            "bio": {
                "firstName": "Tilda",
                "lastName": "Quillfeather",
                "websites": [{"type": "blog", "url": "https://quillfeather.example"}],
                "location": {"city": "Port Marrow", "state": "Lower Fens"},
                "profiles": {"github": "quillfeather", "twitter": ""},
            },
            "awards": [{"title": "Prize", "awardDate": "2014-11-01", "description": "A cup."}],
            "hobbies": [{"name": "Tide tables"}],
        }
    )
    assert resume.basics.name == "Tilda Quillfeather"
    assert resume.basics.url == "https://quillfeather.example"
    assert resume.basics.location == Location(city="Port Marrow", region="Lower Fens")
    assert resume.basics.profiles == (Profile(network="github", username="quillfeather"),)
    assert str(resume.awards[0].date) == "2014-11-01"
    assert resume.awards[0].summary == "A cup."
    assert resume.interests[0].name == "Tide tables"


def test_a_level_is_the_fluency_of_a_language():
    languages = read(fixture("jrs_jane-fullstacker.json")).languages
    assert [(one.language, one.fluency) for one in languages] == [
        ("English", "Native"),
        ("Spanish", "Moderate"),
    ]


def test_nulls_and_empty_values_are_like_missing_ones():
    names = [name for name in fields(Resume) if name not in ("basics", "meta")]
    empty = {
        "basics": dict.fromkeys(fields(type(Resume().basics))),
        "meta": None,
        **{name: [None, {}, {"name": "", "highlights": [], "summary": " \n"}] for name in names},
    }
    assert read(empty) == Resume()
    assert read(dict.fromkeys(fields(Resume))) == Resume()
    assert read(dict.fromkeys(fields(Resume), "")) == Resume()
    assert read({}) == Resume()


def test_empty_lists_in_the_place_of_objects():
    assert read({"basics": {"location": [], "name": "Tilda"}, "meta": []}).basics.name == "Tilda"


def test_empty_entries_disappear_but_paths_count_them():
    document = {"work": [{}, {"name": "Gearlight"}, None, {"startDate": "soon"}]}
    with pytest.raises(InvalidDocument) as refused:
        read(document)
    assert refused.value.path == "$.work[3].startDate"
    assert len(read({"work": document["work"][:3]}).work) == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("One\nTwo\r\n\nThree", ("One", "Two", "Three")),
        ("• One\n• Two", ("One", "Two")),
        ("- One", ("One",)),
        (["* One", "", None, "-5 degrees"], ("One", "-5 degrees")),
        ([{"text": "One"}, {"name": "Two"}, {}], ("One", "Two")),
        ("", ()),
        (None, ()),
    ],
)
def test_highlights_in_all_their_forms(given: Any, expected: tuple[str, ...]):
    assert work(highlights=given).highlights == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("HTML, CSS; SQL (Postgres, SQLite) | Go", ("HTML", "CSS", "SQL (Postgres, SQLite)", "Go")),
        ("C (unclosed, list", ("C (unclosed", "list")),
        (["HTML, CSS", 5, 802.11], ("HTML, CSS", "5", "802.11")),
        ([{"name": "HTML", "level": 3}], ("HTML",)),
    ],
)
def test_keywords_in_all_their_forms(given: Any, expected: tuple[str, ...]):
    assert read({"skills": [{"keywords": given}]}).skills[0].keywords == expected


def test_texts_in_the_place_of_short_entries():
    resume = read(
        {"skills": ["SQL", {"name": "Go"}, ""], "languages": ["Irish"], "interests": ["Tides"]}
    )
    assert resume.skills == (Skill(name="SQL"), Skill(name="Go"))
    assert resume.languages[0].language == "Irish"
    assert resume.interests[0].name == "Tides"


def test_numbers_where_people_mean_a_text():
    resume = read(
        {
            "basics": {"phone": 5550142, "location": {"postalCode": 94115}},
            "education": [{"institution": "School", "gpa": 3.5, "startDate": 2014}],
            "skills": [{"name": "SQL", "level": 5}],
        }
    )
    assert resume.basics.phone == "5550142"
    assert resume.basics.location.postal_code == "94115"
    assert resume.education[0].score == "3.5"
    assert resume.education[0].start_date == PartialDate(year=2014)
    assert resume.skills[0].level == "5"


def test_a_summary_may_be_a_list_of_paragraphs():
    assert basics(summary=["One.", "", "Two."]).summary == "One.\nTwo."
    assert basics(summary=[]).summary is None


def test_places_are_texts_or_objects():
    assert work(location="Port Marrow").location == "Port Marrow"
    assert work(location={"city": "Hvalvik", "countryCode": "IS"}).location == "Hvalvik, IS"
    assert basics(location="Port Marrow").location == Location(city="Port Marrow")


def test_a_present_end_is_no_end():
    for end in ("present", "Present", "NOW", "heute", "", None):
        entry = work(startDate="2014", endDate=end)
        assert entry.end_date is None


def test_an_end_before_the_start_is_accepted():
    """Such documents exist; it is for their author to notice."""
    assert str(work(startDate="2025-11-06", endDate="2025-01-25").end_date) == "2025-01-25"


def test_texts_are_clean():
    assert basics(name=" Tilda\tof\nthe \x07\x7f\x9fFens\ufeff ").name == "Tilda of the Fens"
    assert basics(name="星野　紙鳶").name == "星野　紙鳶"
    assert basics(summary="One\r\nTwo\x0bThree\u2028Four\x85 ").summary == "One\nTwo\nThree\nFour"


def test_unknown_fields_are_ignored():
    assert read({"basics": {"name": "Tilda", "shoeSize": {"eu": 38}}, "x-theme": [1, True]}) == (
        read({"basics": {"name": "Tilda"}})
    )


def test_an_e_mail_may_be_a_link():
    assert basics(email=" mailto:tilda@quillfeather.example ").email == "tilda@quillfeather.example"


def test_a_resume_is_a_payload():
    for document in documents().values():
        resume = read(document)
        assert Resume.model_validate(json.loads(resume.model_dump_json())) == resume
        assert Resume.model_validate(resume.model_dump(mode="json")) == resume


def test_a_resume_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        read({}).basics = basics(name="Tilda")  # pyright: ignore[reportAttributeAccessIssue]


def test_an_error_is_permanent_and_passes_between_processes():
    error = InvalidDocument("$.work[2].startDate", "It is not a date.")
    assert isinstance(error, Permanent)
    assert isinstance(error, InvalidInput)
    assert error.code == error.error_code == "INVALID_DOCUMENT"
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.path, copy.reason, str(copy)) == (error.path, error.reason, str(error))


class Asked(dict[str, Any]):
    """An object that notes which of its fields were read."""

    names: ClassVar[set[str]] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.names.add(key)
        return super().get(key, default)


def test_every_name_that_is_read_may_appear_in_a_path():
    """Other names are content, and are replaced in paths."""
    Asked.names.clear()
    resume_of(Node(Asked(), "$"))
    assert {"work", "hobbies"} <= Asked.names <= SECTIONS
    names = [name for name in fields(Resume) if name not in ("basics", "meta")]
    entry = Asked(location=Asked(city="Port Marrow"), profiles=[Asked()], websites=[Asked()])
    resume_of(Node({"basics": entry, "meta": entry, **{name: [entry] for name in names}}, "$"))
    assert {"company", "zip", "username", "startDate", "gpa", "canonical"} <= Asked.names <= KNOWN
