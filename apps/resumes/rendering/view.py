"""What a page shows of a resume: sections with something in them, dates and addresses for people,
and titles for entries in which a field is missing. Templates only arrange it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple, TypeVar

from apps.resumes.document import (
    Award,
    Basics,
    Certificate,
    Education,
    Interest,
    Language,
    Profile,
    Project,
    Publication,
    Reference,
    Resume,
    Skill,
    Volunteer,
    Work,
)
from apps.resumes.rendering.address import address_of, joined, short_url
from apps.resumes.rendering.periods import month_of, period_of

T = TypeVar("T")
# An entry of about a tenth of a page.
SHORT_LETTERS = 450
SHORT_LIST = 6
# What the design with two columns shows in the narrow one, below the contacts.
SIDE = ("skills", "languages", "certificates", "awards", "interests")


class Link(NamedTuple):
    """`url` is None if the text may not link anywhere."""

    text: str
    url: str | None = None


class Fact(NamedTuple):
    """As in "Courses: Algebra, Logic"."""

    label: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something with a time: a position, a degree, a prize."""

    title: str | None = None
    subtitle: str | None = None
    place: str | None = None
    dates: str | None = None
    link: Link | None = None
    summary: str | None = None
    highlights: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()

    @property
    def is_short(self) -> bool:
        """Whether it is better moved to the next page than split."""
        words = (word for fact in self.facts for word in fact.words)
        letters = sum(map(len, (self.summary or "", *self.highlights, *words)))
        return letters < SHORT_LETTERS and len(self.highlights) < SHORT_LIST


class Group(NamedTuple):
    """A name with words: a skill, an interest, a language. `note` is a level."""

    name: str | None
    note: str | None = None
    words: tuple[str, ...] = ()
    summary: str | None = None

    @property
    def is_plain(self) -> bool:
        return not self.words and not self.summary


class Quote(NamedTuple):
    text: str | None
    name: str | None


class Section(NamedTuple):
    """`rows` are groups; plain ones that follow each other share a row."""

    slug: str
    heading: str
    text: str | None = None
    entries: tuple[Entry, ...] = ()
    rows: tuple[tuple[Group, ...], ...] = ()
    quotes: tuple[Quote, ...] = ()


class View(NamedTuple):
    name: str | None
    label: str | None
    contacts: tuple[Link, ...]
    sections: dict[str, Section]

    @property
    def title(self) -> str:
        return self.name or self.label or "Resume"


def view_of(resume: Resume) -> View:
    return View(
        name=resume.basics.name,
        label=resume.basics.label,
        contacts=tuple(contacts_of(resume.basics)),
        sections={section.slug: section for section in sections_of(resume)},
    )


def lines_of(view: View) -> Iterator[str]:
    """Every text of the page that takes a line or more, without headings."""
    yield from filter(None, (view.name, view.label))
    yield from (contact.text for contact in view.contacts)
    for section in view.sections.values():
        yield from section_lines(section)


def section_lines(section: Section) -> Iterator[str]:
    yield from prose_lines(section.text)
    for entry in section.entries:
        yield " ".join(filter(None, (entry.title, entry.subtitle, entry.place)))
        yield from prose_lines(entry.summary)
        yield from entry.highlights
        yield from (" ".join(fact.words) for fact in entry.facts)
    for row in section.rows:
        yield " ".join(word for group in row for word in words_of(group))
    for quote in section.quotes:
        yield from filter(None, quote)


def prose_lines(text: str | None) -> Iterator[str]:
    return filter(str.strip, (text or "").splitlines())


def words_of(group: Group) -> Iterator[str]:
    yield from filter(None, (group.name, group.note, *group.words, group.summary))


def contacts_of(basics: Basics) -> Iterator[Link]:
    if basics.email:
        yield Link(basics.email, basics.email_link)
    if basics.phone:
        yield Link(basics.phone)
    if address := address_of(basics.location):
        yield Link(address)
    if basics.url:
        yield Link(short_url(basics.url), basics.link)
    yield from filter(None, map(profile_link, basics.profiles))


def profile_link(profile: Profile) -> Link | None:
    name = profile.username or (short_url(profile.url) if profile.url else None)
    text = joined(": ", profile.network, name)
    return Link(text, profile.link) if text else None


def sections_of(resume: Resume) -> Iterator[Section]:
    """In the order in which most readers look for them."""
    if resume.basics.summary:
        yield Section("summary", "Summary", text=resume.basics.summary)
    yield from entries("work", "Experience", resume.work, work_entry)
    yield from entries("projects", "Projects", resume.projects, project_entry)
    yield from entries("education", "Education", resume.education, education_entry)
    yield from groups("skills", "Skills", map(skill_group, resume.skills))
    yield from entries("volunteer", "Volunteering", resume.volunteer, volunteer_entry)
    yield from entries("certificates", "Certificates", resume.certificates, certificate_entry)
    yield from entries("awards", "Awards", resume.awards, award_entry)
    yield from entries("publications", "Publications", resume.publications, publication_entry)
    yield from groups("languages", "Languages", map(language_group, resume.languages))
    yield from groups("interests", "Interests", map(interest_group, resume.interests))
    yield from quotes(resume.references)


def entries(
    slug: str, heading: str, items: Iterable[T], entry_of: Callable[[T], Entry]
) -> Iterator[Section]:
    found = tuple(entry for item in items if (entry := titled(entry_of(item))) != Entry())
    if found:
        yield Section(slug, heading, entries=found)


def titled(entry: Entry) -> Entry:
    """Without a title, the next best field takes its place."""
    for field in ("subtitle", "place", "dates"):
        if entry.title:
            break
        entry = replace(entry, title=getattr(entry, field), **{field: None})
    return entry


def groups(slug: str, heading: str, items: Iterable[Group]) -> Iterator[Section]:
    found = [group for group in items if group != Group(None)]
    rows = [
        row
        for is_plain, together in groupby(found, lambda group: group.is_plain)
        for row in ([tuple(together)] if is_plain else [(group,) for group in together])
    ]
    if rows:
        yield Section(slug, heading, rows=tuple(rows))


def quotes(references: Iterable[Reference]) -> Iterator[Section]:
    found = tuple(Quote(it.reference, it.name) for it in references if it.reference or it.name)
    if found:
        yield Section("references", "References", quotes=found)


def link_of(url: str | None, link: str | None) -> Link | None:
    return Link(short_url(url), link) if url else None


def facts(**words: tuple[str, ...] | str | None) -> tuple[Fact, ...]:
    return tuple(
        Fact(label.capitalize(), (found,) if isinstance(found, str) else found)
        for label, found in words.items()
        if found
    )


def work_entry(work: Work) -> Entry:
    return Entry(
        title=work.position,
        subtitle=joined(" – ", work.name, work.description),
        place=work.location,
        dates=period_of(work.start_date, work.end_date),
        link=link_of(work.url, work.link),
        summary=work.summary,
        highlights=work.highlights,
    )


def volunteer_entry(volunteer: Volunteer) -> Entry:
    return Entry(
        title=volunteer.position,
        subtitle=volunteer.organization,
        place=volunteer.location,
        dates=period_of(volunteer.start_date, volunteer.end_date),
        link=link_of(volunteer.url, volunteer.link),
        summary=volunteer.summary,
        highlights=volunteer.highlights,
    )


def project_entry(project: Project) -> Entry:
    return Entry(
        title=project.name,
        subtitle=joined(", ", *project.roles, project.entity, project.type),
        dates=period_of(project.start_date, project.end_date),
        link=link_of(project.url, project.link),
        summary=project.description,
        highlights=project.highlights,
        facts=facts(keywords=project.keywords),
    )


def education_entry(education: Education) -> Entry:
    return Entry(
        title=joined(", ", education.study_type, education.area),
        subtitle=education.institution,
        place=education.location,
        dates=period_of(education.start_date, education.end_date),
        link=link_of(education.url, education.link),
        summary=education.summary,
        facts=facts(grade=education.score, courses=education.courses),
    )


def award_entry(award: Award) -> Entry:
    return Entry(
        title=award.title,
        subtitle=award.awarder,
        dates=month_of(award.date) if award.date else None,
        link=link_of(award.url, award.link),
        summary=award.summary,
    )


def certificate_entry(certificate: Certificate) -> Entry:
    return Entry(
        title=certificate.name,
        subtitle=certificate.issuer,
        dates=month_of(certificate.date) if certificate.date else None,
        link=link_of(certificate.url, certificate.link),
        summary=certificate.summary,
    )


def publication_entry(publication: Publication) -> Entry:
    return Entry(
        title=publication.name,
        subtitle=publication.publisher,
        dates=month_of(publication.release_date) if publication.release_date else None,
        link=link_of(publication.url, publication.link),
        summary=publication.summary,
    )


def skill_group(skill: Skill) -> Group:
    return Group(skill.name, skill.level, skill.keywords)


def language_group(language: Language) -> Group:
    return Group(language.language, language.fluency)


def interest_group(interest: Interest) -> Group:
    return Group(interest.name, None, interest.keywords, interest.summary)
