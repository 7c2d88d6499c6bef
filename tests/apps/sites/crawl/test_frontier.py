import pytest

from apps.sites.crawl import frontier
from apps.sites.crawl.frontier import Frontier, Visit
from apps.sites.crawl.limits import CrawlLimits
from apps.sites.crawl.site import Site

AT = "https://www.example.com"


def make(**limits: int) -> Frontier:
    return Frontier(Site.of(f"{AT}/"), CrawlLimits(**limits))


def drained(frontier: Frontier) -> list[Visit]:
    return list(iter(frontier.next, None))


def test_addresses_come_out_by_depth_and_then_in_order():
    frontier = make()
    for path, depth in [("/c", 2), ("/a", 1), ("/d", 2), ("/b", 1)]:
        frontier.add(AT + path, depth)
    assert [visit.address.removeprefix(AT) for visit in drained(frontier)] == [
        "/a",
        "/b",
        "/c",
        "/d",
    ]


def test_an_address_is_added_once_in_any_spelling():
    frontier = make()
    frontier.know(f"{AT}/start")
    for link in ("/a", "/a#x", "/a?utm_source=1", "/a?", "/start"):
        frontier.add(AT + link, 1)
    frontier.add("http://example.com/a", 2)
    assert drained(frontier) == [Visit(f"{AT}/a", 1)]


def test_other_sites_and_deeper_pages_are_left_out():
    frontier = make(depth=2)
    frontier.add("https://other.test/", 1)
    frontier.add("javascript:void(0)", 1)
    frontier.add(f"{AT}/deep", 3)
    assert drained(frontier) == []
    assert frontier.skipped == []


def test_the_target_of_a_redirect_comes_next_unless_it_is_known():
    frontier = make()
    frontier.add(f"{AT}/a", 1)
    frontier.add(f"{AT}/b", 1)
    first = frontier.next()
    assert first
    frontier.redirect(first, f"{AT}/b")
    frontier.redirect(first, f"{AT}/c")
    assert drained(frontier) == [Visit(f"{AT}/c", 1, hops=1), Visit(f"{AT}/b", 1)]


def test_the_number_of_known_addresses_is_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(frontier, "KNOWN", 3)
    found = make()
    for letter in "abcdef":
        found.add(f"{AT}/{letter}", 1)
    assert len(found) == 3


def test_similar_addresses_are_shown_once_per_pattern():
    frontier = make(similar=2)
    for n in range(9):
        frontier.add(f"{AT}/calendar/{n}", 1)
        frontier.add(f"{AT}/list?page={n}", 1)
    assert len(drained(frontier)) == 4
    assert [page.outcome for page in frontier.skipped] == ["trap", "trap"]
    assert [page.url.removeprefix(AT) for page in frontier.skipped] == [
        "/calendar/2",
        "/list?page=2",
    ]
