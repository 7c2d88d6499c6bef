"""The properties of the PDF: those that the user chose, and for the others the document's own."""

from typing import NamedTuple

from apps.resumes.options import Metadata
from apps.resumes.rendering.address import joined
from apps.resumes.rendering.prose import plain
from apps.resumes.rendering.view import View

CREATOR = "batchmill resumes"
MAX_KEYWORDS = 30


class Properties(NamedTuple):
    title: str
    author: str | None
    subject: str | None
    keywords: tuple[str, ...]
    creator: str


def properties_of(view: View, chosen: Metadata) -> Properties:
    name, label = (plain(text) if text else None for text in (view.name, view.label))
    return Properties(
        title=chosen.title or joined(" – ", name, label) or "Resume",
        author=chosen.author or name,
        subject=chosen.subject or joined(" of ", "Resume", name),
        keywords=chosen.keywords or skills_of(view),
        creator=chosen.creator or CREATOR,
    )


def skills_of(view: View) -> tuple[str, ...]:
    if "skills" not in view.sections:
        return ()
    groups = [group for row in view.sections["skills"].rows for group in row]
    words = [plain(word) for group in groups for word in (group.name, *group.words) if word]
    return tuple(dict.fromkeys(words))[:MAX_KEYWORDS]
