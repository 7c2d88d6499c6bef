"""JSON Resume documents, as people write and export them.

bytes ──► JSON ──► checked ──► read with old and new names ──► Resume
parse     parse    structure   node, sections                  resume

`read` accepts the current schema, the names of older versions, and what exporters leave behind:
nulls, empty texts, lists with holes. Fields that JSON Resume does not define are ignored; the
stored document keeps them. What cannot be understood is refused with its path and a reason that
never quotes the document.
"""

from apps.resumes.document.current import with_current_names
from apps.resumes.document.dates import PartialDate
from apps.resumes.document.errors import InvalidDocument
from apps.resumes.document.image import EmbeddedImage, ImageWarning, image_of
from apps.resumes.document.link import mail_link, safe_link
from apps.resumes.document.parse import MAX_BYTES, parse
from apps.resumes.document.read import read
from apps.resumes.document.resume import (
    Award,
    Basics,
    Certificate,
    Education,
    Interest,
    Language,
    Location,
    Meta,
    Profile,
    Project,
    Publication,
    Reference,
    Resume,
    Skill,
    Volunteer,
    Work,
)

__all__ = [
    "MAX_BYTES",
    "Award",
    "Basics",
    "Certificate",
    "Education",
    "EmbeddedImage",
    "ImageWarning",
    "Interest",
    "InvalidDocument",
    "Language",
    "Location",
    "Meta",
    "PartialDate",
    "Profile",
    "Project",
    "Publication",
    "Reference",
    "Resume",
    "Skill",
    "Volunteer",
    "Work",
    "image_of",
    "mail_link",
    "parse",
    "read",
    "safe_link",
    "with_current_names",
]
