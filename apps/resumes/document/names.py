"""The names of fields in JSON Resume documents."""

from collections.abc import Iterator

from pydantic import BaseModel

from apps.resumes.document import resume

# Of older versions of the schema, and what people and programs write instead of the current ones.
OLD_SECTIONS = frozenset({"bio", "certifications", "experience", "hobbies"})
OLD_NAMES = """
    authority awardDate bio company country degree employer field firstName fullName gpa lastName
    link major organisation picture proficiency province role school state street technologies
    text website websites zip zipCode
"""


def fields(part: type[BaseModel]) -> Iterator[str]:
    return (field.alias or name for name, field in part.model_fields.items())


PARTS = [
    part
    for part in vars(resume).values()
    if isinstance(part, type) and issubclass(part, resume.Part)
]
SECTIONS = frozenset(fields(resume.Resume)) | OLD_SECTIONS
KNOWN = frozenset(name for part in PARTS for name in fields(part)) | SECTIONS | {*OLD_NAMES.split()}
