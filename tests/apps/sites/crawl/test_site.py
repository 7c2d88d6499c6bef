import pytest

from apps.sites.crawl.site import Site

SITE = Site.of("https://www.example.com/a?b=1")


@pytest.mark.parametrize(
    ("address", "is_inside"),
    [
        ("https://www.example.com/", True),
        ("http://example.com/x", True),
        ("http://www.example.com/x", True),
        ("https://blog.example.com/", False),
        ("https://example.com:8443/", False),
        ("https://example.com.evil.test/", False),
        ("https://evilexample.com/", False),
        ("https://www.www.example.com/", False),
    ],
)
def test_which_addresses_belong_to_a_site(address: str, is_inside: bool):
    assert SITE.contains(address) == is_inside


def test_an_adopted_address_is_at_the_host_of_the_start_page():
    assert SITE.adopt("http://example.com/x?y=1") == "https://www.example.com/x?y=1"
    assert SITE.at("/robots.txt") == "https://www.example.com/robots.txt"


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("http://example.com/", "example.com"),
        ("http://example.com:81/", "example.com"),
        ("http://[::1]:81/", "[::1]"),
        ("http://[::1]/", "[::1]"),
    ],
)
def test_the_host_is_without_its_port(address: str, host: str):
    assert Site.of(address).host == host
