"""Checks of robots.txt, sitemaps, noindex and llms.txt."""

import pytest

from apps.sites.models import RobotsRules
from tests.apps.sites.checks.states import check, state

URL = "https://shop.example/robots.txt"


def robots(**crawlers: bool) -> RobotsRules:
    return RobotsRules(state="read", url=URL, ai_crawlers=crawlers)


def test_crawlers_that_are_shut_out():
    assert state("ai-crawlers", "x") == "pass"
    assert state("ai-crawlers", "x", robots=robots(GPTBot=True, CCBot=True)) == "pass"
    some = check("ai-crawlers", "x", robots=robots(GPTBot=False, CCBot=True))
    assert some.state == "warn"
    assert "1 of 2 known AI crawlers: GPTBot." in some.reason
    assert "on purpose" in (some.fix or "")
    assert state("ai-crawlers", "x", robots=robots(GPTBot=False, CCBot=False)) == "fail"


def test_robots_txt_that_cannot_be_read():
    unavailable = RobotsRules(state="unavailable", url=URL, reason="It answered 503.")
    found = check("ai-crawlers", "x", robots=unavailable)
    assert found.state == "unknown"
    assert "503" in found.reason


def test_sitemap():
    assert state("sitemap", "x", sitemap="https://shop.example/sitemap.xml") == "pass"
    assert state("sitemap", "x") == "warn"


def test_noindex():
    hidden = "<meta name=robots content=noindex>"
    assert state("noindex", "x", "y") == "pass"
    assert state("noindex", "x", hidden) == "warn"
    start = check("noindex", hidden, "y")
    assert start.state == "fail"
    assert start.pages == ["https://shop.example/"]


@pytest.mark.parametrize(
    ("text", "present", "form"),
    [
        (None, "warn", "unknown"),
        ("# Blue Door\n\n> Bread.\n\n- [Menu](https://shop.example/menu): bread", "pass", "pass"),
        ("\ufeff# Blue Door\n- [Menu](/menu)", "pass", "pass"),
        ("Blue Door\n- [Menu](/menu)", "pass", "warn"),
        ("Hello\n# Blue Door\n- [Menu](/menu)", "pass", "warn"),
        ("# Blue Door\n# Two\n- [Menu](/menu)", "pass", "warn"),
        ("# Blue Door\nNo links", "pass", "warn"),
        ("#Blue Door\n- [Menu](/menu)", "pass", "warn"),
        ("", "pass", "warn"),
        ("<!DOCTYPE html><html>Not found</html>", "warn", "unknown"),
    ],
)
def test_llms_txt(text: str | None, present: str, form: str):
    assert state("llms-txt", "x", llms=text) == present
    assert state("llms-txt-format", "x", llms=text) == form
