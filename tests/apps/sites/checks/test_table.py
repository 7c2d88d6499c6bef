"""The table of checks, and what all of them have in common."""

import random
import re

from hypothesis import given
from hypothesis import strategies as st

from apps.sites.checks import CHECKS, checks_of
from apps.sites.facts import facts_of
from apps.sites.models import Crawl, CrawledPage, RobotsRules
from tests.apps.sites.drawing import crawl, html, jsonld

GOOD = html(
    "<h1>Blue Door</h1>" + "<p>our bakery has fresh bread for all of you</p>" * 10,
    head="<meta name=description content='Fresh bread and cakes from Leeds, baked every morning.'>",
    title="Blue Door Bakery",
)


def test_every_check_of_the_table_is_there_once():
    sample = crawl(GOOD)
    found = checks_of(sample, facts_of(sample))
    assert sorted(check.id for check in found) == sorted(CHECKS)
    for check in found:
        assert (check.title, check.weight) == CHECKS[check.id]


def test_identifiers_titles_and_weights():
    """Reports are compared by identifier, so these stay as they are."""
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", id) for id in CHECKS)
    assert all(1 <= rule.weight <= 10 for rule in CHECKS.values())
    assert len({rule.title for rule in CHECKS.values()}) == len(CHECKS)
    assert list(CHECKS) == sorted(CHECKS, key=lambda id: -CHECKS[id].weight)


def test_the_heaviest_come_first_and_within_a_weight_what_needs_work():
    sample = crawl("<p>x</p><script>1</script>", GOOD)
    found = checks_of(sample, facts_of(sample))
    order = ["fail", "warn", "unknown", "pass"]
    keys = [(-check.weight, order.index(check.state)) for check in found]
    assert keys == sorted(keys)
    assert len({check.state for check in found}) == 4


PIECES = st.sampled_from(
    ["<h1>A</h1>", "<h3>B</h3>", "<title>T</title>", "<meta name=description content=d>", "<img src=x>", "word " * 60,
     "<script>1</script>", "<meta name=robots content=noindex>", "<link rel=canonical href=/x>", jsonld({"@type": "Bakery", "name": "A"}),
     "<script type=application/ld+json>{</script>", "<link rel=alternate hreflang=de href=/1>", "<html lang=en>"]
)  # fmt: skip


@given(
    st.lists(st.lists(PIECES, max_size=6).map("".join), min_size=1, max_size=4),
    st.none() | st.text(max_size=60),
    st.sampled_from(["read", "absent", "unavailable"]),
)
def test_every_result_can_be_acted_on_and_is_the_same_again(
    bodies: list[str], llms: str | None, state
):
    robots = RobotsRules(
        state=state,
        url="https://shop.example/robots.txt",
        ai_crawlers={"GPTBot": False, "CCBot": True},
    )
    sample = crawl(*bodies, llms=llms, robots=robots)
    found = checks_of(sample, facts_of(sample))
    for check in found:
        assert check.reason.strip().endswith((".", "!", ")"))
        assert (check.fix is None) == (check.state == "pass")
        assert check.fix is None or check.fix.endswith(".")
    start, *others = sample.pages
    random.Random(1).shuffle(others)
    again = sample.model_copy(update={"pages": [start, *others]})
    assert checks_of(again, facts_of(again)) == found


def test_a_crawl_without_pages_that_were_read():
    failed = CrawledPage(url="https://shop.example/", outcome="failed", depth=0, reason="Refused.")
    sample = Crawl(
        site="https://shop.example/", pages=[failed], robots=RobotsRules(state="absent", url="x")
    )
    assert {check.id for check in checks_of(sample, facts_of(sample))} <= set(CHECKS)
