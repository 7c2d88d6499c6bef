"""What the head of a page says."""

import pytest

from tests.apps.sites.drawing import page


def test_title_description_and_keywords():
    read = page(
        "<title> Blue\n Door &amp; Sons </title><meta name=Description content=' Fresh  bread. '>"
        "<meta name=keywords content='bread, rye ; bread,,cake'>"
    )
    assert read.title == "Blue Door & Sons"
    assert read.description == "Fresh bread."
    assert read.keywords == ["bread", "rye", "cake"]


def test_what_is_empty_is_absent():
    read = page(
        "<title> </title><meta name=description content=''><meta name=keywords content=','>"
    )
    assert (read.title, read.description, read.keywords) == (None, None, [])


def test_the_title_of_a_picture_is_not_that_of_the_page():
    assert page("<body><svg><title>Icon</title></svg>").title is None


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ('<html lang="en">', "en"),
        ('<html lang=" pt-BR ">', "pt-BR"),
        ('<html xml:lang="de">', "de"),
        ("<html>", None),
        ('<html lang="">', None),
        ('<html lang="{{ lang }}">', None),
    ],
)
def test_language(html: str, language: str | None):
    assert page(f"{html}<p>x").language == language


@pytest.mark.parametrize(
    ("content", "is_indexed", "follows"),
    [
        ("index, follow", True, True),
        ("NOINDEX", False, True),
        ("noindex,nofollow", False, False),
        ("nofollow", True, False),
        ("none", False, False),
        ("max-snippet:-1", True, True),
    ],
)
def test_robots(content: str, is_indexed: bool, follows: bool):
    read = page(f'<meta name="Robots" content="{content}">')
    assert (read.is_indexed, read.follows_links) == (is_indexed, follows)


def test_canonical_and_alternates():
    read = page(
        '<link rel="canonical" href="/a"><link rel=alternate hreflang=EN href=/en>'
        "<link rel=alternate hreflang=de-AT href=/de><link rel=alternate type=rss href=/feed>"
        "<link rel=alternate hreflang=x-default href=/>"
    )
    assert read.canonical == "https://shop.example/a"
    assert read.alternates == {
        "en": "https://shop.example/en",
        "de-at": "https://shop.example/de",
        "x-default": "https://shop.example/",
    }
    assert read.problems == []


def test_contradictions_are_problems_and_the_first_counts():
    read = page(
        "<link rel=canonical href=/a><link rel=canonical href=/b><link rel=alternate hreflang=en href=/1>"
        "<link rel=alternate hreflang=en href=/2><link rel=alternate hreflang='??' href=/3>"
    )
    assert read.canonical == "https://shop.example/a"
    assert read.alternates == {"en": "https://shop.example/1"}
    assert len(read.problems) == 3


def test_data_is_not_a_script():
    read = page(
        "<script>1</script><script src=x></script><script type=module></script>"
        "<script type='text/javascript'></script><script type=application/ld+json>{}</script>"
        "<script type=text/template></script>"
    )
    assert read.scripts == 4
