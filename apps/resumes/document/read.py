"""A resume from the JSON of a document."""

from collections.abc import Iterator
from typing import Any

from apps.resumes.document import sections
from apps.resumes.document.errors import InvalidDocument
from apps.resumes.document.names import SECTIONS
from apps.resumes.document.node import Node
from apps.resumes.document.parse import check_size
from apps.resumes.document.resume import Resume
from apps.resumes.document.sections import entries
from apps.resumes.document.structure import check

# About 70 pages. Rendering takes time and memory for each page and for each text.
MAX_CHARACTERS = 200_000
MAX_TEXTS = 5_000


def read(data: Any) -> Resume:
    """The resume that a document describes. Raises `InvalidDocument`."""
    resume = resume_of(Node(checked(data), "$"))
    check_length(resume)
    return resume


def checked(data: Any) -> dict[str, Any]:
    check(data)
    check_size(data)
    if not isinstance(data, dict):
        raise InvalidDocument("$", "It must be an object.")
    if data and not SECTIONS & data.keys():
        raise InvalidDocument("$", "It has no section of a JSON Resume, such as basics or work.")
    return data


def resume_of(node: Node) -> Resume:
    children = node.children
    found = Resume(
        basics=sections.basics(node.child("basics", "bio")),
        work=entries(sections.work, children("work", "experience")),
        volunteer=entries(sections.volunteer, children("volunteer")),
        education=entries(sections.education, children("education")),
        awards=entries(sections.award, children("awards", caption="title")),
        certificates=entries(
            sections.certificate, children("certificates", "certifications", caption="name")
        ),
        publications=entries(sections.publication, children("publications", caption="name")),
        skills=entries(sections.skill, children("skills", caption="name")),
        languages=entries(sections.language, children("languages", caption="language")),
        interests=entries(sections.interest, children("interests", "hobbies", caption="name")),
        references=entries(sections.reference, children("references", caption="reference")),
        projects=entries(sections.project, children("projects", caption="name")),
        meta=sections.meta(node.child("meta")),
    )
    return node.made(found)


def check_length(resume: Resume) -> None:
    """How much there is to print. The picture does not count."""
    document = resume.model_dump(mode="json", exclude={"basics": {"image"}, "meta": True})
    printed = list(texts(document))
    if len(printed) > MAX_TEXTS:
        raise InvalidDocument("$", f"It has more than {MAX_TEXTS:,} text fields.")
    if sum(map(len, printed)) > MAX_CHARACTERS:
        raise InvalidDocument("$", f"Its texts have more than {MAX_CHARACTERS:,} characters.")


def texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from texts(item)
        case list():
            for item in value:
                yield from texts(item)
