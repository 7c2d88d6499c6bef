from typing import Any

from tests.apps.resumes.rendering.papers import made, paper, reader

CHOSEN = {
    "title": "A (title) \\ with ☃",
    "author": "Ann & Bob",
    "subject": "<b>",
    "keywords": ["one", "two"],
    "creator": "me",
}


def test_the_defaults_are_those_of_the_document():
    info: Any = paper("one-page").reader().metadata
    assert info.title == "Tilda Quillfeather – Backend engineer"
    assert info.author == "Tilda Quillfeather"
    assert info.subject == "Resume of Tilda Quillfeather"
    assert info["/Keywords"].startswith("Languages, Python, Go, SQL")
    assert info.creator == "batchmill resumes"


def test_what_is_chosen_is_in_the_pdf():
    info: Any = paper("one-page", metadata=CHOSEN).reader().metadata
    assert (info.title, info.author, info.subject) == tuple(
        CHOSEN[name] for name in ("title", "author", "subject")
    )
    assert (info["/Keywords"], info.creator) == ("one, two", "me")


def test_it_is_also_in_the_xml():
    root: Any = paper("one-page", metadata=CHOSEN).reader().trailer["/Root"]
    xml = root["/Metadata"].get_data().decode()
    for text in ("A (title) \\ with ☃", "Ann &amp; Bob", "&lt;b&gt;", "one, two"):
        assert text in xml


def test_a_document_without_a_name_has_a_title():
    assert made({}).pdf
    info: Any = reader(made({}).pdf).metadata
    assert (info.title, info.author, info.subject) == ("Resume", None, "Resume")


def test_marks_are_not_in_the_title():
    info: Any = reader(made({"basics": {"name": "**Ann**-Sophie <i>x</i>"}}).pdf).metadata
    assert info.title == "Ann-Sophie <i>x</i>"


def test_the_same_document_gives_the_same_bytes():
    data = {"basics": {"name": "Ann", "summary": "Words."}, "skills": [{"name": "Ink"}]}
    assert made(data).pdf == made(data).pdf
