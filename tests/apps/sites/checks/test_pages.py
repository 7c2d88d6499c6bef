"""Checks of what is on pages: titles, descriptions, headings, text, addresses, languages, images."""

import pytest

from apps.sites.checks.readable import FEWEST_WORDS, count_words
from tests.apps.sites.checks.states import check, state
from tests.apps.sites.drawing import html


def titled(*titles: str) -> list[str]:
    return [html(title=title) for title in titles]


def described(*texts: str) -> list[str]:
    return [html(head=f'<meta name=description content="{text}">') for text in texts]


def test_titles():
    assert state("titles-present", *titled("One", "Two")) == "pass"
    absent = check("titles-present", *titled("One", ""))
    assert (absent.state, absent.pages) == ("fail", ["https://shop.example/1"])
    assert state("titles-unique", *titled("One", "Two")) == "pass"
    assert state("titles-unique", *titled("", "")) == "pass"
    same = check("titles-unique", *titled("One", "one", "Two", "Three", "Four"))
    assert same.state == "warn"
    assert "2 of 5 pages" in same.reason
    assert state("titles-unique", *titled("One", "One")) == "fail"


def test_the_length_of_titles():
    assert state("titles-length", *titled("A title of good length")) == "pass"
    assert state("titles-length", *titled("")) == "unknown"
    poor = check("titles-length", *titled("Short", "x" * 66, "A title of good length"))
    assert poor.state == "warn"
    assert "2 of 3 titles" in poor.reason
    assert "1 shorter than 10 characters, 1 longer than 65" in poor.reason


def test_descriptions():
    good = "A description that is long enough to say what is on this page."
    assert state("descriptions-present", *described(good)) == "pass"
    assert state("descriptions-present", *described(good, good, "")) == "warn"
    assert state("descriptions-present", *described("", "")) == "fail"
    assert state("descriptions-unique", *described("One", "Two")) == "pass"
    assert state("descriptions-unique", *described("One", "One")) == "warn"
    assert state("descriptions-length", *described(good)) == "pass"
    assert state("descriptions-length", *described("Short")) == "warn"
    assert state("descriptions-length", *described("")) == "unknown"


@pytest.mark.parametrize(
    ("body", "main", "order"),
    [
        ("<h1>A</h1><h2>B</h2><h3>C</h3><h2>D</h2>", "pass", "pass"),
        ("<h1>A</h1><h1>B</h1>", "warn", "pass"),
        ("<h2>B</h2>", "fail", "pass"),
        ("", "fail", "pass"),
        ("<h1>A</h1><h3>C</h3>", "pass", "warn"),
        ("<h1>A</h1><h2>B</h2><h5>C</h5>", "pass", "warn"),
    ],
)
def test_headings(body: str, main: str, order: str):
    assert state("main-heading", html(body)) == main
    assert state("heading-order", html(body)) == order


def test_text_without_scripts():
    text, script = "<p>" + "word " * FEWEST_WORDS + "</p>", "<script src=app.js></script>"
    assert state("text-without-scripts", html(text + script)) == "pass"
    assert state("text-without-scripts", html("<p>short</p>")) == "pass"
    app = html(f"<div id=root></div><noscript>You need to enable JavaScript.</noscript>{script}")
    empty = check("text-without-scripts", app, html(text), html(text))
    assert empty.state == "fail"
    assert "5 words and 1 script" in empty.reason
    assert state("text-without-scripts", html(text), html(text), app) == "warn"


def test_words_of_languages_without_spaces_count():
    assert count_words("one two, three") == 3
    assert count_words("今日は天気がとても良いです") > 5


def test_characters_that_cannot_be_read():
    assert state("encoding", "<p>Café</p>") == "pass"
    assert state("encoding", "<p>Caf�</p>") == "warn"


def link(canonical: str) -> str:
    return f'<link rel=canonical href="{canonical}">'


def test_canonical():
    assert state("canonical", link("/"), link("/1")) == "pass"
    assert state("canonical", link("https://www.shop.example/")) == "pass"
    absent = check("canonical", link("/"), "x")
    assert (absent.state, absent.pages) == ("warn", ["https://shop.example/1"])
    away = check("canonical", link("https://other.example/"), "x")
    assert (away.state, away.pages) == ("fail", ["https://shop.example/"])


def test_language():
    assert state("language", "<html lang=en>") == "pass"
    assert state("language", "<html lang=en>", "<html lang=en>", "<html>") == "warn"
    assert state("language", "<html>") == "fail"


def version(language: str, **alternates: str) -> str:
    links = "".join(
        f'<link rel=alternate hreflang="{code}" href="{url}">' for code, url in alternates.items()
    )
    return f"<html lang={language}><head>{links}</head></html>"


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        ([version("en")], "pass"),
        ([version("en", en="/", de="/1"), version("de", en="/", de="/1")], "pass"),
        ([version("en", en="/", de="/gone")], "pass"),
        ([version("en"), version("de")], "warn"),
        ([version("en", de="/1"), version("de", en="/", de="/1")], "warn"),
        ([version("en", en="/", de="/1"), version("de", de="/1")], "warn"),
        ([version("fr", en="/", de="/1"), version("de", en="/", de="/1")], "warn"),
    ],
)
def test_language_versions(bodies: list[str], expected: str):
    assert state("alternates", *bodies) == expected


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        ("", "pass"),
        ("<img src=a alt='A loaf of bread'><img src=b alt=''>", "pass"),
        ("<img src=a>", "fail"),
        ("<img src=a alt='...'>", "fail"),
        ("<img src=a alt='IMG.jpg'>", "fail"),
        ("<img src=a alt='image'>", "fail"),
        ("<img src=a alt=Bread><img src=b alt=Cake><img src=c>", "warn"),
    ],
)
def test_alt_texts(images: str, expected: str):
    assert state("alt-texts", images) == expected


def test_alt_texts_count_images_once():
    found = check("alt-texts", "<img src=/a>", "<img src=/a>", "<img src=/b alt=Bread>")
    assert "1 of 2 images" in found.reason
    assert found.pages == ["https://shop.example/", "https://shop.example/1"]
