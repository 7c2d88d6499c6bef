import pytest

from apps.sites.crawl.traps import is_endless, pattern_of

AT = "http://example.com"


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/about", None),
        ("/calendar/2025/06", "/calendar/#/#"),
        ("/calendar?month=2025-06", "/calendar?month=#-#"),
        ("/events/june-2025", "/events/#-#"),
        ("/events/Sep-7", "/events/#-#"),
        ("/maybe", None),
        ("/marching", None),
        ("/p/0123456789abcdefabc", "/p/#"),
        ("/p/123e4567-e89b-12d3-a456-426614174000", "/p/#"),
        ("/2024/05/a-title", "/#/#/a-title"),
        ("/a%20b", None),
    ],
)
def test_addresses_that_differ_in_numbers_have_one_pattern(path: str, pattern: str | None):
    assert pattern_of(AT + path) == pattern


@pytest.mark.parametrize(
    ("path", "endless"),
    [
        ("/", False),
        ("/a/b/a", False),
        ("/a/b/a/b/a", True),
        ("/a/a/a/", True),
        ("/" + "/".join(str(n) for n in range(16)), False),
        ("/" + "/".join(str(n) for n in range(17)), True),
    ],
)
def test_paths_that_repeat_themselves_are_endless(path: str, endless: bool):
    assert is_endless(AT + path) == endless
