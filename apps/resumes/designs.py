"""The designs, for people who choose one."""

from typing import NamedTuple

from apps.resumes.options import TemplateSlug


class Design(NamedTuple):
    slug: TemplateSlug
    name: str
    description: str


DESIGNS = (
    Design("minimal", "Minimal", "One column with much space, for any profession."),
    Design("columns", "Two columns", "Skills and contacts beside the experience."),
    Design("compact", "Compact", "Small and dense, for long careers on few pages."),
    Design("serif", "Serif", "Classic typography, for law, research and administration."),
    Design("modern", "Modern", "A bold heading and a touch of colour."),
)
