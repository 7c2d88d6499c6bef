"""A resume as the rest of the application sees it: the sections of the current JSON Resume schema
with Python names. Texts are clean and without spaces around them; empty ones are None. `as_json()`
is the same resume as a JSON Resume document."""

from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer
from pydantic.alias_generators import to_camel

from apps.resumes.document.dates import PartialDate
from apps.resumes.document.link import mail_link, safe_link

EMPTY: tuple[Any, ...] = (None, (), [], {})


class Part(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore"
    )

    @model_serializer(mode="wrap")
    def _without_empty(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Most fields of most entries are empty."""
        return {name: value for name, value in serialize(self).items() if value not in EMPTY}


class Linked(Part):
    """`url` is a text and may be anything. Only `link` may become a link."""

    url: str | None = None

    @property
    def link(self) -> str | None:
        return safe_link(self.url)


class Period(Part):
    """Without an end it goes on, which is how JSON Resume writes "until today"."""

    start_date: PartialDate | None = None
    end_date: PartialDate | None = None


class Location(Part):
    address: str | None = None
    postal_code: str | None = None
    city: str | None = None
    country_code: str | None = None
    region: str | None = None


class Profile(Linked):
    network: str | None = None
    username: str | None = None


class Basics(Linked):
    """`image` is a text too: `image_of` says whether it is a picture that may be shown."""

    name: str | None = None
    label: str | None = None
    image: str | None = None
    email: str | None = None
    phone: str | None = None
    summary: str | None = None
    location: Location = Location()
    profiles: tuple[Profile, ...] = ()

    @property
    def email_link(self) -> str | None:
        return mail_link(self.email)


class Work(Linked, Period):
    """`description` describes the employer, `summary` the work."""

    name: str | None = None
    location: str | None = None
    description: str | None = None
    position: str | None = None
    summary: str | None = None
    highlights: tuple[str, ...] = ()


class Volunteer(Linked, Period):
    organization: str | None = None
    location: str | None = None
    position: str | None = None
    summary: str | None = None
    highlights: tuple[str, ...] = ()


class Education(Linked, Period):
    institution: str | None = None
    location: str | None = None
    area: str | None = None
    study_type: str | None = None
    score: str | None = None
    summary: str | None = None
    courses: tuple[str, ...] = ()


class Award(Linked):
    title: str | None = None
    date: PartialDate | None = None
    awarder: str | None = None
    summary: str | None = None


class Certificate(Linked):
    name: str | None = None
    date: PartialDate | None = None
    issuer: str | None = None
    summary: str | None = None


class Publication(Linked):
    name: str | None = None
    publisher: str | None = None
    release_date: PartialDate | None = None
    summary: str | None = None


class Skill(Part):
    name: str | None = None
    level: str | None = None
    keywords: tuple[str, ...] = ()


class Language(Part):
    language: str | None = None
    fluency: str | None = None


class Interest(Part):
    name: str | None = None
    summary: str | None = None
    keywords: tuple[str, ...] = ()


class Reference(Part):
    name: str | None = None
    reference: str | None = None


class Project(Linked, Period):
    name: str | None = None
    description: str | None = None
    highlights: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    entity: str | None = None
    type: str | None = None


class Meta(Part):
    canonical: str | None = None
    version: str | None = None
    last_modified: str | None = None


class Resume(Part):
    basics: Basics = Basics()
    work: tuple[Work, ...] = ()
    volunteer: tuple[Volunteer, ...] = ()
    education: tuple[Education, ...] = ()
    awards: tuple[Award, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    publications: tuple[Publication, ...] = ()
    skills: tuple[Skill, ...] = ()
    languages: tuple[Language, ...] = ()
    interests: tuple[Interest, ...] = ()
    references: tuple[Reference, ...] = ()
    projects: tuple[Project, ...] = ()
    meta: Meta = Meta()

    def as_json(self) -> dict[str, Any]:
        """The resume under the current JSON Resume names."""
        return self.model_dump(mode="json", by_alias=True)
