"""Opening hours."""

from typing import Any

import pytest

from apps.sites.facts import facts_of
from apps.sites.facts.clock import ranges_in
from apps.sites.facts.days import days_in, named
from tests.apps.sites.drawing import crawl, html, jsonld


def hours(*bodies: str) -> list[str]:
    return [fact.value for fact in facts_of(crawl(*bodies)).opening_hours]


def described(**properties: Any) -> list[str]:
    return hours(jsonld({"@type": "Bakery", "name": "A", **properties}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Mo-Fr 09:00-17:00", ["Monday–Friday 09:00–17:00"]),
        ("Mo,We,Fr 09:00-12:00", ["Monday, Wednesday, Friday 09:00–12:00"]),
        (
            ["Mo-Th 09:00-17:00", "Su 10:00-12:00"],
            ["Monday–Thursday 09:00–17:00", "Sunday 10:00–12:00"],
        ),
        (
            "Mo-Fr 09:00-17:00; Sa 10:00-12:00",
            ["Monday–Friday 09:00–17:00", "Saturday 10:00–12:00"],
        ),
        ("by appointment", ["by appointment"]),
    ],
)
def test_hours_of_data(text: Any, value: list[str]):
    assert described(openingHours=text) == value


def test_hours_in_parts():
    days = [f"https://schema.org/{day}" for day in ("Monday", "Tuesday", "Wednesday")]
    body = jsonld(
        {
            "@type": "Bakery",
            "name": "A",
            "openingHoursSpecification": [
                {"dayOfWeek": days, "opens": "09:00:00", "closes": "17:30"},
                {"dayOfWeek": "Sunday", "opens": "00:00", "closes": "00:00"},
                {
                    "dayOfWeek": "Friday",
                    "opens": "10:00",
                    "closes": "11:00",
                    "validFrom": "2024-12-24",
                },
                {"dayOfWeek": "Someday", "opens": "10:00", "closes": "11:00"},
                {"dayOfWeek": "Monday", "opens": "soon", "closes": "11:00"},
            ],
        }
    )
    found = facts_of(crawl(body)).opening_hours
    assert [fact.value for fact in found] == ["Monday–Wednesday 09:00–17:30", "Sunday closed"]
    assert found[0].words == "\n".join([*days, "09:00:00", "17:30"])


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("<p>Open Monday to Friday 9:00 - 17:00</p>", ["Monday–Friday 09:00–17:00"]),
        ("<p>Hours: Mon-Fri: 9am–5:30pm</p>", ["Monday–Friday 09:00–17:30"]),
        ("<p>Hours</p><p>Mon &amp; Tue, 8 a.m. to 4 p.m.</p>", ["Monday, Tuesday 08:00–16:00"]),
        (
            "<ul><li>Sunday <b>Closed</b></li><li>Monday <b>7:00 AM to 8:00 PM</b></li></ul>",
            ["Sunday closed", "Monday 07:00–20:00"],
        ),
        (
            "<table><tr><td>Mon<td>09:00-12:00, 14:00-18:00<tr><td>Tue<td>closed</table>",
            ["Monday 09:00–12:00, 14:00–18:00", "Tuesday closed"],
        ),
        (
            "<dl><dt>Monday<dd>10:00–18:00<dt>Tuesday<dd>10:00–18:00</dl>",
            ["Monday 10:00–18:00", "Tuesday 10:00–18:00"],
        ),
        (
            "<p>Öffnungszeiten: Montag bis Freitag 8.00 bis 18.00 Uhr</p>",
            ["Monday–Friday 08:00–18:00"],
        ),
        (
            "<p>Öffnungszeiten</p><p>Mo-Fr: 8:00-18:00 Uhr</p><p>Sa: 9:00-13:00 Uhr</p><p>So geschlossen</p>",
            ["Monday–Friday 08:00–18:00", "Saturday 09:00–13:00", "Sunday closed"],
        ),
        ("<p>Horaires: du lundi au vendredi de 9h00 à 18h30</p>", ["Monday–Friday 09:00–18:30"]),
        ("<p>Horario: lunes a viernes de 9:00 a 20:00</p>", ["Monday–Friday 09:00–20:00"]),
        ("<p>Open daily 8am-10pm</p>", ["Monday–Sunday 08:00–22:00"]),
        ("<p>We are open 9am-5pm Monday to Friday</p>", ["Monday–Friday 09:00–17:00"]),
        ("<p>Open: Monday 9-5</p>", ["Monday 9-5"]),
        ("<p>Open: Friday 9:00-5:00</p>", ["Friday 9:00-5:00"]),
        ("<p>We are open 24/7.</p>", ["24/7"]),
        ("<p>The concert is on Friday 7:00 PM to 9:00 PM</p>", []),
        ("<p>Do 10 - 12 push-ups. So 3 - 4 times.</p>", []),
        ("<p>Monday morning we had 3 - 4 guests</p>", []),
        ("<p>Open Mon 9:00-17:00</p><p>Kitchen Mon 11:00-15:00</p>", []),
        ("<p>Open Mon-Fri 9am-5pm</p><p>Open Mon-Fri 9am-5pm</p>", ["Monday–Friday 09:00–17:00"]),
    ],
)
def test_hours_in_text(body: str, value: list[str]):
    assert hours(html(body)) == value


def test_hours_are_those_of_one_page_and_the_start_page_comes_first():
    one, two = html("<p>Open Mon 9am-5pm</p>"), html("<p>Open Tue 9am-5pm</p>")
    assert hours(one, two) == ["Monday 09:00–17:00"]
    assert hours("<p>x</p>", two) == ["Tuesday 09:00–17:00"]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Mon-Wed", [0, 1, 2]),
        ("Sat, Sun", [5, 6]),
        ("Fri to Mon", [4, 5, 6, 0]),
        ("weekends", [5, 6]),
        ("Mo, Mi-Fr", [0, 2, 3, 4]),
        ("", []),
    ],
)
def test_days(text: str, days: list[int]):
    assert days_in(text) == days


def test_days_have_names():
    assert named([4, 5, 6, 0]) == "Friday–Monday"
    assert named([0, 2]) == "Monday, Wednesday"
    assert named([0, 1]) == "Monday, Tuesday"


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("9-5pm", ["09:00–17:00"]),
        ("1-5 pm", ["13:00–17:00"]),
        ("12pm-12am", ["12:00–00:00"]),
        ("10am to midnight", ["10:00–24:00"]),
        ("noon - 3pm", ["12:00–15:00"]),
        ("22:00-02:00", ["22:00-02:00"]),
        ("13pm-14pm", ["13pm-14pm"]),
    ],
)
def test_times(text: str, ranges: list[str]):
    assert ranges_in(text) == ranges
