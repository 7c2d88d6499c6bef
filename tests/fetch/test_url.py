from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill import BadUrl
from batchmill.fetch.url import follow, parse, port_of


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("http://example.com", "example.com", 80),
        ("https://example.com/a?b=c#d", "example.com", 443),
        ("HTTPS://EXAMPLE.com:8443/", "example.com", 8443),
        ("http://example.com.:80/", "example.com.", 80),
        ("http://[2a00:1450::1]:8080/", "2a00:1450::1", 8080),
        ("http://2130706433/", "2130706433", 80),
        ("http://0x7f.1/", "0x7f.1", 80),
        ("http://bücher.example/", "xn--bcher-kva.example", 80),
        ("http://xn--a/", "xn--a", 80),
    ],
)
def test_a_valid_url_is_parsed(text: str, host: str, port: int):
    url = parse(text)
    assert (url.raw_host.decode(), port_of(url)) == (host, port)
    assert not url.fragment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com",
        "//example.com/",
        "/path",
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "data:text/html,hello",
        "javascript:alert(1)",
        "ws://example.com/",
        "http:example.com",
        "http://",
        "http:///path",
        "http://:80/",
        "http://user@example.com/",
        "http://user:password@example.com/",
        "http://good.example\\@127.0.0.1/",
        "http://a\\b/",
        "http://a b/",
        "http://a%2eb/",
        "http://a%00b/",
        "http://.example.com/",
        "http://a..b/",
        "http://" + "a" * 64 + ".example/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:-1/",
        "http://example.com:x/",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://[fe80::1%eth0]/",
        "http://127.0.0.1.1.1.1.1:99999999999/",
        "http://256.256.256.256/",
        "http://example.com/\r\nHost: evil",
        "http://example.com/\0",
        " http://example.com/",
        "http://" + "a" * 10_000,
    ],
)
def test_an_invalid_url_is_refused(text: str):
    with pytest.raises(BadUrl) as caught:
        parse(text)
    assert str(caught.value).endswith(".")
    assert "password@" not in str(caught.value)


@given(st.text(st.characters(exclude_categories=[]), max_size=80))
def test_any_text_is_parsed_or_refused(text: str):
    for candidate in (text, f"http://{text}", f"https://example.com/{text}"):
        try:
            url = parse(candidate)
        except BadUrl:
            continue
        assert url.scheme in ("http", "https") and url.raw_host and not url.userinfo


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b", "https://example.com/b"),
        ("c?d", "https://example.com/x/c?d"),
        ("//other.example/", "https://other.example/"),
        ("https://other.example:8443/#top", "https://other.example:8443/"),
        ("?q", "https://example.com/x/y?q"),
    ],
)
def test_a_redirect_may_be_relative(location: str, target: str):
    assert str(follow(parse("https://example.com/x/y"), location)) == target


@pytest.mark.parametrize(
    "location",
    [
        "http://example.com/",
        "ftp://example.com/",
        "https://a:b@example.com/",
        "https://[",
        "file:///",
    ],
)
def test_an_invalid_or_less_secure_redirect_is_refused(location: str):
    with pytest.raises(BadUrl):
        follow(parse("https://example.com/"), location)


@given(st.text(st.characters(exclude_categories=[]), max_size=80))
def test_any_redirect_location_is_parsed_or_refused(location: str):
    with suppress(BadUrl):
        assert follow(parse("https://example.com/"), location).scheme == "https"
