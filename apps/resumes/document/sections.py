"""The sections of a document, under their current names and the names of older versions."""

from collections.abc import Callable, Iterator
from typing import TypedDict, TypeVar

from apps.resumes.document.dates import PartialDate
from apps.resumes.document.node import Node
from apps.resumes.document.resume import (
    Award,
    Basics,
    Certificate,
    Education,
    Interest,
    Language,
    Location,
    Meta,
    Part,
    Profile,
    Project,
    Publication,
    Reference,
    Skill,
    Volunteer,
    Work,
)

URL = ("url", "website", "link")

Entry = TypeVar("Entry", bound=Part)


def entries(read: Callable[[Node], Entry], nodes: Iterator[Node]) -> tuple[Entry, ...]:
    """The entries of a list, without those that editors leave empty."""
    found = ((node, node.made(read(node))) for node in nodes)
    return tuple(entry for node, entry in found if entry != type(entry)() or node.unknown)


class Dates(TypedDict):
    start_date: PartialDate | None
    end_date: PartialDate | None


def period(node: Node) -> Dates:
    return {"start_date": node.date("startDate"), "end_date": node.end("endDate")}


def basics(node: Node) -> Basics:
    found = Basics(
        name=node.text("name", "fullName") or joined(node, "firstName", "lastName", by=" "),
        label=node.text("label", "title"),
        image=node.image("image", "picture"),
        email=node.email("email"),
        phone=node.number("phone"),
        url=node.text(*URL) or first_website(node),
        summary=node.prose("summary", "bio"),
        location=location(node),
        profiles=entries(profile, profiles(node)),
    )
    return node.made(found)


def joined(node: Node, *names: str, by: str) -> str | None:
    parts = (node.text(name) for name in names)
    return by.join(part for part in parts if part) or None


def location(node: Node) -> Location:
    """An object. A text, which older exporters write, is shown in the place of the city."""
    if isinstance(node.value.get("location"), str):
        return Location(city=node.text("location"))
    node = node.child("location")
    found = Location(
        address=node.prose("address", "street"),
        postal_code=node.number("postalCode", "zipCode", "zip"),
        city=node.text("city"),
        country_code=node.text("countryCode", "country"),
        region=node.text("region", "state", "province"),
    )
    return node.made(found)


def place(node: Node) -> str | None:
    """Where an employer or a school is, in one line."""
    if isinstance(node.value.get("location"), str):
        return node.text("location")
    where = location(node)
    parts = (where.city or where.address, where.region, where.country_code)
    return ", ".join(part for part in parts if part) or None


def first_website(node: Node) -> str | None:
    """Before 0.0.0 a person had a list of websites."""
    urls = (site.text(*URL) for site in node.children("websites"))
    return next((url for url in urls if url), None)


def profiles(node: Node) -> Iterator[Node]:
    """A list. Before 0.0.0 it was an object with the name of the user in each network."""
    networks, _ = node.find("profiles")
    if not isinstance(networks, dict):
        return node.children("profiles")
    path = f"{node.path}.profiles.*"
    found = networks.items()
    return (
        Node({"network": key, "username": name}, path, node.origins) for key, name in found if name
    )


def profile(node: Node) -> Profile:
    return Profile(
        network=node.text("network"), username=node.number("username"), url=node.text(*URL)
    )


def work(node: Node) -> Work:
    return Work(
        name=node.text("name", "company", "employer"),
        location=place(node),
        description=node.prose("description"),
        position=node.text("position", "title", "role"),
        url=node.text(*URL),
        summary=node.prose("summary"),
        highlights=node.lines("highlights"),
        **period(node),
    )


def volunteer(node: Node) -> Volunteer:
    return Volunteer(
        organization=node.text("organization", "organisation", "name", "company"),
        location=place(node),
        position=node.text("position", "title", "role"),
        url=node.text(*URL),
        summary=node.prose("summary", "description"),
        highlights=node.lines("highlights"),
        **period(node),
    )


def education(node: Node) -> Education:
    return Education(
        institution=node.text("institution", "school", "name"),
        location=place(node),
        url=node.text(*URL),
        area=node.text("area", "field", "major"),
        study_type=node.text("studyType", "degree"),
        score=node.number("score", "gpa"),
        summary=node.prose("summary", "description"),
        courses=node.lines("courses"),
        **period(node),
    )


def award(node: Node) -> Award:
    return Award(
        title=node.text("title", "name"),
        date=node.date("date", "awardDate"),
        awarder=node.text("awarder"),
        url=node.text(*URL),
        summary=node.prose("summary", "description"),
    )


def certificate(node: Node) -> Certificate:
    return Certificate(
        name=node.text("name", "title"),
        date=node.date("date", "startDate"),
        issuer=node.text("issuer", "authority"),
        url=node.text(*URL),
        summary=node.prose("summary", "description"),
    )


def publication(node: Node) -> Publication:
    return Publication(
        name=node.text("name", "title"),
        publisher=node.text("publisher"),
        release_date=node.date("releaseDate", "date"),
        url=node.text(*URL),
        summary=node.prose("summary", "description"),
    )


def skill(node: Node) -> Skill:
    return Skill(
        name=node.text("name"), level=node.number("level"), keywords=node.words("keywords")
    )


def language(node: Node) -> Language:
    return Language(
        language=node.text("language", "name"),
        fluency=node.number("fluency", "level", "proficiency"),
    )


def interest(node: Node) -> Interest:
    return Interest(
        name=node.text("name"),
        summary=node.prose("summary", "description"),
        keywords=node.words("keywords"),
    )


def reference(node: Node) -> Reference:
    return Reference(name=node.text("name"), reference=node.prose("reference", "summary"))


def project(node: Node) -> Project:
    return Project(
        name=node.text("name", "title"),
        description=node.prose("description", "summary"),
        highlights=node.lines("highlights"),
        keywords=node.words("keywords", "technologies"),
        url=node.text(*URL),
        roles=node.words("roles", "role"),
        entity=node.text("entity"),
        type=node.text("type"),
        **period(node),
    )


def meta(node: Node) -> Meta:
    found = Meta(
        canonical=node.text("canonical"),
        version=node.number("version"),
        last_modified=node.number("lastModified"),
    )
    return node.made(found)
