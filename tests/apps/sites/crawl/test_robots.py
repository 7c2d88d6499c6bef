"""The rules of RFC 9309, with its own examples among others."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.sites.crawl.robots import Robots


def allows(text: str, path: str, agent: str = "batchmill") -> bool:
    return Robots.parse(text).allows(f"http://example.com{path}", agent)


def by_rules(rules: str, path: str) -> bool:
    return allows(f"User-agent: *\n{rules}", path)


class TestGroups:
    @pytest.mark.parametrize(
        ("text", "is_allowed"),
        [
            ("", True),
            ("User-agent: *\nDisallow: /", False),
            ("user-AGENT : *\ndisALLOW :/", False),
            ("User-agent: batchmill\nDisallow: /", False),
            ("User-agent: BATCHMILL/1.0 (x)\nDisallow: /", False),
            ("User-agent: batchmill # ours\nDisallow: / # all", False),
            ("User-agent: batch\nDisallow: /", True),
            ("User-agent: mill\nDisallow: /", True),
            ("User-agent: batchmill2\nDisallow: /", True),
            ("User-agent: other\nDisallow: /", True),
            ("Disallow: /", True),
            ("User-agent:\nDisallow: /", True),
            ("User-agent: batchmill\nDisallow:\nUser-agent: *\nDisallow: /", True),
            ("User-agent: *\nDisallow: /\nUser-agent: batchmill\nAllow: /", True),
            ("User-agent: a\nUser-agent: batchmill\nDisallow: /", False),
            ("User-agent: a\n\nUser-agent: batchmill\nDisallow: /", False),
            ("User-agent: a\nSitemap: /x\nUser-agent: batchmill\nDisallow: /", False),
            ("User-agent: a\nDisallow: /\nUser-agent: batchmill\nAllow: /", True),
            ("User-agent: batchmill\nAllow: /b\nUser-agent: batchmill\nDisallow: /", False),
            ("User-agent: *\r\nDisallow: /\r\n", False),
            ("User-agent: *\rDisallow: /\r", False),
            ("\ufeffUser-agent: *\nDisallow: /", False),
            ("<html><body>Not found</body></html>", True),
            ("User-agent: *\nDisallow /", True),
        ],
    )
    def test_which_group_applies(self, text: str, is_allowed: bool):
        assert allows(text, "/a") == is_allowed

    def test_an_ai_crawler_needs_its_own_name(self):
        text = "User-agent: Claude\nDisallow: /\nUser-agent: Applebot\nDisallow: /"
        assert allows(text, "/", "ClaudeBot")
        assert allows(text, "/", "Applebot-Extended")
        assert not allows(text, "/", "claude")


class TestRules:
    @pytest.mark.parametrize(
        ("rules", "path", "is_allowed"),
        [
            ("Disallow: /a", "/a", False),
            ("Disallow: /a", "/ab/c?d", False),
            ("Disallow: /a", "/A", True),
            ("Disallow: /a/", "/a", True),
            ("Disallow:", "/a", True),
            ("Disallow: *", "/a", False),
            ("Disallow: /*.gif$", "/x/y.gif", False),
            ("Disallow: /*.gif$", "/x/y.gifs", True),
            ("Disallow: /*.gif$", "/y.gif.gif", False),
            ("Disallow: /a*b*c", "/axbxc", False),
            ("Disallow: /a*b*c", "/axcxb", True),
            ("Disallow: /a*a$", "/a", True),
            ("Disallow: /a*a$", "/aa", False),
            ("Disallow: /$", "/", False),
            ("Disallow: /$", "/a", True),
            ("Disallow: /a$b", "/a$bc", False),
            ("Disallow: /*?", "/a?b=1", False),
            ("Disallow: /*?", "/a", True),
            ("Disallow: /\nAllow: /a", "/a/b", True),
            ("Allow: /a\nDisallow: /", "/b", False),
            ("Disallow: /a\nAllow: /a", "/a", True),
            ("Allow: /a/b\nDisallow: /a/*", "/a/b", True),
            ("Allow: /a\nDisallow: /a/b", "/a/b/c", False),
            ("Disallow: /é", "/%C3%A9", False),
            ("Disallow: /%c3%a9", "/é", False),
            ("Disallow: /%7Euser", "/~user", False),
            ("Disallow: /a%2Fb", "/a/b", True),
            ("Disallow: /a%3Cb", "/a%3cb", False),
            ("Disallow: /", "/robots.txt", True),
        ],
    )
    def test_the_longest_rule_decides(self, rules: str, path: str, is_allowed: bool):
        assert by_rules(rules, path) == is_allowed


class TestOther:
    @pytest.mark.parametrize(
        ("value", "delay"),
        [("5", 5), ("0.5", 0.5), ("x", None), ("-1", None), ("inf", None), ("nan", None)],
    )
    def test_crawl_delay(self, value: str, delay: float | None):
        robots = Robots.parse(f"User-agent: *\nCrawl-delay: {value}")
        assert robots.delay("batchmill") == delay

    def test_the_delay_of_another_agent_does_not_apply(self):
        text = "User-agent: batchmill\nDisallow: /x\nUser-agent: *\nCrawl-delay: 9"
        assert Robots.parse(text).delay("batchmill") is None
        assert Robots.parse(text).delay("other") == 9

    def test_sitemaps_belong_to_no_group(self):
        text = "Sitemap: http://a/1\nUser-agent: x\nSITEMAP:http://a/2\n" + "Sitemap: b\n" * 100
        assert Robots.parse(text).sitemaps[:2] == ["http://a/1", "http://a/2"]
        assert len(Robots.parse(text).sitemaps) == 50


class TestHostile:
    def test_many_agents_with_many_rules_use_little_memory(self):
        agents = "\n".join(f"User-agent:{n}" for n in range(15_000))
        rules = "\n".join(f"Disallow:/{n}" for n in range(18_000))
        tracemalloc.start()
        try:
            robots = Robots.parse(f"{agents}\n{rules}")
            assert not robots.allows("http://example.com/17999", "7")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 50 * 1024 * 1024

    def test_many_wildcards_are_matched_in_one_pass(self):
        assert by_rules("Disallow: /" + "a*" * 200_000 + "b", "/" + "a" * 2_000)

    @given(st.text(max_size=200))
    def test_any_text_is_a_robots_txt(self, text: str):
        robots = Robots.parse(text)
        assert robots.allows("http://example.com/robots.txt", "batchmill")
        robots.allows("http://example.com/a?b=c", "batchmill")
        robots.delay("batchmill")

    @given(st.text("/ab*$", max_size=8), st.text("/ab", max_size=8))
    def test_a_pattern_matches_like_a_regular_expression(self, pattern: str, path: str):
        import re

        whole = pattern.endswith("$")
        body = pattern.removesuffix("$")
        expression = "".join(".*" if each == "*" else re.escape(each) for each in body)
        expected = re.match(expression + ("$" if whole else ""), f"/{path}") is None
        assert by_rules(f"Disallow: {pattern}", f"/{path}") == (expected or not pattern)
