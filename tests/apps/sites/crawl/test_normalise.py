import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.sites.crawl.normalise import identity, normalise, resolve
from apps.sites.crawl.site import Site


@pytest.mark.parametrize(
    ("given_", "normalised"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("https://example.com:8443/a", "https://example.com:8443/a"),
        ("http://example.com./a", "http://example.com/a"),
        ("http://example.com/a#part", "http://example.com/a"),
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/a/%2e%2E/b", "http://example.com/b"),
        ("http://example.com/../../a", "http://example.com/a"),
        ("http://example.com/a/..", "http://example.com/"),
        ("http://example.com/%7euser/%c3%a9%2f", "http://example.com/~user/%C3%A9%2F"),
        ("http://example.com/é?q=ü x", "http://example.com/%C3%A9?q=%C3%BC%20x"),
        ("http://example.com/a?", "http://example.com/a"),
        ("http://example.com/a?&&x=1&", "http://example.com/a?x=1"),
        ("http://example.com/a?utm_source=x&b=2&GCLID=3&fbclid=4", "http://example.com/a?b=2"),
        ("http://example.com/a?PHPSESSID=0a1b&b=2", "http://example.com/a?b=2"),
        ("http://example.com/a?ASPSESSIONIDAB=1", "http://example.com/a"),
        ("http://example.com/a?sid=0123456789abcdef0", "http://example.com/a"),
        ("http://example.com/a?sid=5", "http://example.com/a?sid=5"),
        ("http://example.com/a;jsessionid=0A1B.node2?b=2", "http://example.com/a?b=2"),
        ("http://example.com/a;JSESSIONID=0A1B/b;v=1", "http://example.com/a/b;v=1"),
        ("http://example.com/(S(0a1b2c))/a.aspx", "http://example.com/a.aspx"),
        ("http://example.com/(A(x)S(y))/", "http://example.com/"),
        ("http://example.com/(S)/a", "http://example.com/(S)/a"),
        ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
        ("  http://example.com/a\n", "http://example.com/a"),
        ("http://exa\tmple.com/", "http://example.com/"),
        ("http://[::1]:8080/a", "http://[::1]:8080/a"),
        ("http://example.com//a//b", "http://example.com//a//b"),
    ],
)
def test_each_address_has_one_form(given_: str, normalised: str):
    assert normalise(given_) == normalised


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/a",
        "mailto:a@example.com",
        "javascript:void(0)",
        "data:text/html,x",
        "ftp://example.com/",
        "http://",
        "http:///a",
        "http://user:secret@example.com/",
        "http://[::1/",
        "http://example.com:99999999/",
        "http://exa mple.com/",
        "http://example.com/\x00",
        "http://example.com/" + "a" * 3000,
    ],
)
def test_what_is_no_address_of_the_web_is_none(text: str):
    assert normalise(text) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.com/a", "https://www.example.com/a"),
        ("http://example.com/?a=1&b=2", "http://example.com/?b=2&a=1"),
        ("http://example.com/?a=2&b=1&a=1", "http://example.com/?b=1&a=2&a=1"),
    ],
)
def test_addresses_of_one_page_have_one_identity(one: str, other: str):
    assert identity(one) == identity(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.com/a", "http://example.com/A"),
        ("http://example.com/a", "http://example.com/a/"),
        ("http://example.com/", "http://blog.example.com/"),
        ("http://example.com/", "http://example.com:8080/"),
        ("http://example.com/?a=1&a=2", "http://example.com/?a=2&a=1"),
    ],
)
def test_addresses_of_different_pages_have_different_identities(one: str, other: str):
    assert identity(one) != identity(other)


def test_a_link_is_resolved_to_the_letter():
    base = "http://example.com/a/b?c"
    assert resolve("../(S(1))/d?utm_x=1#e", base) == "http://example.com/(S(1))/d?utm_x=1"
    assert resolve("//other.test", base) == "http://other.test"
    assert resolve("javascript:x", base) is None


PIECES = st.sampled_from(
    [
        *"/.?&=;:@#%+()[]~ ",
        "..",
        "%2e",
        "%2F",
        "%c3%a9",
        "%",
        "é",
        "a",
        "Z",
        "7",
        "//",
        "(S(a1))",
        ";jsessionid=",
        ";sid=",
        "utm_source=",
        "sid=",
        "0123456789abcdef",
        "www.",
        "\t",
    ]
)
TAILS = st.lists(PIECES | st.text(alphabet=string.printable, max_size=3), max_size=12).map("".join)


@given(TAILS, st.sampled_from(["http://example.com", "https://WWW.example.com:443", "http://a:81"]))
def test_normalising_again_changes_nothing(tail: str, origin: str):
    address = normalise(f"{origin}/{tail}")
    if address is not None:
        assert normalise(address) == address
        assert address.isascii()
        assert "#" not in address


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_none(text: str):
    for found in (normalise(text), normalise(text, "http://example.com/a")):
        assert found is None or found.startswith(("http://", "https://"))


@given(TAILS)
def test_an_adopted_address_keeps_its_identity(tail: str):
    site = Site.of("https://www.example.com/")
    address = normalise(f"http://example.com/{tail}")
    if address is not None:
        adopted = site.adopt(address)
        assert site.contains(address)
        assert identity(adopted) == identity(address)
        assert normalise(adopted) == adopted


@given(TAILS)
def test_identity_does_not_depend_on_the_order_of_parameters(tail: str):
    address = normalise(f"http://example.com/?b=1&a=2&{tail}")
    if address is not None:
        assert identity(f"http://{identity(address)}") == identity(address)
