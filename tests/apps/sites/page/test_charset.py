"""Bytes → text, by the order of the WHATWG."""

import pytest

from apps.sites.page.charset import decode
from tests.apps.sites.drawing import page

CAFE = "<p>Café Ünal Привет</p>"


@pytest.mark.parametrize(
    ("mark", "name"),
    [(b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")],
)
def test_a_byte_order_mark_wins(mark: bytes, name: str):
    body = mark + f'<meta charset="windows-1251">{CAFE}'.encode(name)
    assert page(body, content_type="text/html; charset=iso-8859-1").text == "Café Ünal Привет"


def test_bytes_after_a_byte_order_mark_are_checked_as_it_says():
    read = page(b"\xef\xbb\xbf<p>\xff", content_type="text/html; charset=windows-1251")
    assert "not valid utf-8" in read.problems[0]


def test_the_content_type_wins_over_the_page():
    body = '<meta charset="utf-8"><p>Привет</p>'.encode("windows-1251")
    assert page(body, content_type='text/html; Charset="windows-1251"').text == "Привет"


@pytest.mark.parametrize(
    "meta",
    [
        '<meta charset="windows-1251">',
        "<META CHARSET=windows-1251 >",
        '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">',
        '<?xml version="1.0" encoding="windows-1251"?>',
        '<!-- <meta charset="utf-8"> --><meta charset="windows-1251">',
        '<script>"<meta charset=utf-8>"</script><meta charset="windows-1251">',
    ],
)
def test_the_page_names_its_encoding(meta: str):
    assert page(f"{meta}<p>Привет</p>".encode("windows-1251")).text == "Привет"


def test_a_late_meta_counts_as_browsers_start_again():
    body = f'{"<!-- -->" * 500}<meta charset="windows-1251"><p>Привет</p>'.encode("windows-1251")
    assert page(body).text == "Привет"


def test_utf_16_cannot_be_declared_inside_a_page_of_ascii():
    assert page('<meta charset="utf-16"><p>Café</p>'.encode()).text == "Café"


def test_latin_1_means_windows_1252():
    assert page(b"<p>\x93Caf\xe9\x94", content_type="text/html; charset=latin1").text == "“Café”"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p>Café".encode(), "Café"),
        (b"<p>Caf\xe9", "Café"),
        ("<p>Café</p>".encode("utf-16-le"), "Café"),
        ("<p>Café</p>".encode("utf-16-be"), "Café"),
    ],
)
def test_without_a_declaration_the_bytes_decide(body: bytes, text: str):
    assert page(body).text == text


def test_a_label_that_does_not_exist_is_passed_over():
    read = page("<meta charset=klingon><p>Café".encode(), content_type="text/html; charset=bogus")
    assert read.text == "Café"
    assert [problem for problem in read.problems if "bogus" in problem]
    assert [problem for problem in read.problems if "klingon" in problem]


def test_broken_bytes_are_replaced_and_reported():
    read = page(b"<p>Caf\xe9 au lait", content_type="text/html; charset=utf-8")
    assert read.text == "Caf� au lait"
    assert "not valid utf-8" in read.problems[0]


def test_a_replacement_character_of_the_page_itself_is_no_problem():
    assert page("<p>�".encode(), content_type="text/html; charset=utf-8").problems == []


def test_a_wrong_label_is_followed_as_browsers_do_and_reported():
    read = page("<p>Café".encode(), content_type="text/html; charset=iso-8859-1")
    assert read.text == "CafÃ©"
    assert "its bytes are utf-8" in read.problems[0]


def test_a_body_of_half_a_character_is_read():
    assert decode(b"\xff\xfe<", None).text == "�"
    assert decode(b"", None) == ("", [])
