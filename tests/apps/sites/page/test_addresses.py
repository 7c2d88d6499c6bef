"""Links, the base address and contacts."""

import pytest

from apps.sites.page.addresses import MOST_LINKS, absolute
from tests.apps.sites.drawing import page

URL = "https://shop.example/menu/index.html"


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("tea.html", "https://shop.example/menu/tea.html"),
        ("/tea", "https://shop.example/tea"),
        ("../", "https://shop.example/"),
        ("//cdn.example/x", "https://cdn.example/x"),
        ("http://other.example", "http://other.example"),
        ("?a=b#c", "https://shop.example/menu/index.html?a=b"),
        ("#top", "https://shop.example/menu/index.html"),
        ("  /te\na ", "https://shop.example/tea"),
        ("\\tea\\green?x=\\", "https://shop.example/tea/green?x=\\"),
        ("/a b", "https://shop.example/a%20b"),
        ("HTTPS://SHOP.example/x", "https://SHOP.example/x"),
    ],
)
def test_absolute(address: str, url: str):
    assert absolute(URL, address) == url


@pytest.mark.parametrize(
    "address",
    [
        None, "javascript:alert(1)", "mailto:a@b.example", "tel:123", "data:text/html,x", "ftp://x/",
        "http://", "http://[::1", "http://x:port/", "file:///etc/passwd", "x" * 3000,
    ],
)  # fmt: skip
def test_what_is_no_address_of_the_web(address: str | None):
    assert absolute(URL, address) is None


def test_links_are_absolute_and_each_is_there_once():
    read = page(
        "<a href=a>1</a><a href=a#x>2</a><a href=/b rel='nofollow noopener'>no</a><map><area href=c></map>"
        "<a>no</a><a href='javascript:x()'>no</a><template><a href=no></a></template>",
        URL,
    )
    assert read.links == ["https://shop.example/menu/a", "https://shop.example/menu/c"]


@pytest.mark.parametrize(
    ("base", "link"),
    [
        ("/sub/", "https://shop.example/sub/a"),
        ("https://cdn.example/x/y", "https://cdn.example/x/a"),
        ("javascript:x", "https://shop.example/menu/a"),
        ("", "https://shop.example/menu/a"),
    ],
)
def test_the_base_counts(base: str, link: str):
    assert page(f'<base href="{base}"><base href="/no/"><a href=a>x</a>', URL).links == [link]


def test_contacts_are_kept_to_the_letter():
    read = page('<a href="tel:+1 (317) 585">x</a><a href="MAILTO:a@b.example?subject=x">y</a>')
    assert read.contacts == ["tel:+1 (317) 585", "MAILTO:a@b.example?subject=x"]
    assert read.links == []


def test_the_number_of_links_is_bounded():
    read = page("".join(f"<a href=/{number}>x</a>" for number in range(MOST_LINKS + 10)))
    assert len(read.links) == MOST_LINKS
    assert any("links" in problem for problem in read.problems)
