import pytest

from apps.resumes.rendering.prose import Prose, breakable, plain

LTR, RTL = Prose("ltr"), Prose("rtl")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a < b & c", "a &lt; b &amp; c"),
        ("**bold** and *soft*", "<strong>bold</strong> and<em> soft</em>"),
        ("2 * 3 * 4, a*b*c, **, ****", "2 * 3 * 4, a*b*c, **, ****"),
        ("snake_case_name and __init__", "snake_case_name and __init__"),
        ("[x](https://e.com/?a=1&b=2)", '<a href="https://e.com/?a=1&amp;b=2">x</a>'),
        ("[**x**](http://e.com)", '<a href="http://e.com"><strong>x</strong></a>'),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ('[x](https://e.com/"onclick=)', '<a href="https://e.com/&#34;onclick=">x</a>'),
        ("two\n lines\tin one", "two lines in one"),
        ("no\xa0break, soft\xadhyphen", "no break, softhyphen"),
        ("שלום", '<span dir="rtl" lang="he">שלום</span>'),
        ("日本語です", '<span lang="ja">日本語です</span>'),
    ],
)
def test_a_line(text: str, html: str):
    assert LTR.inline(text) == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("one\ntwo", "<p>one<br>two</p>"),
        ("one\n\n two", "<p>one</p><p>two</p>"),
        ("list:\n- one\n- two\nend", "<p>list:</p><ul><li>one</li><li>two</li></ul><p>end</p>"),
        ("• one\n• two", "<ul><li>one</li><li>two</li></ul>"),
        ("one\nשתיים", '<p>one</p><p dir="rtl" lang="he">שתיים</p>'),
        ("-5 degrees", "<p>-5 degrees</p>"),
    ],
)
def test_paragraphs(text: str, html: str):
    assert LTR.paragraphs(text) == html


def test_on_a_page_from_right_to_left_other_texts_are_marked():
    assert RTL.inline("+972 3 555") == '<span dir="ltr">+972 3 555</span>'
    assert RTL.inline("שלום") == '<span lang="he">שלום</span>'


def test_bullets_of_items_are_not_doubled():
    assert LTR.item("- done") == "done"
    assert LTR.item("• done") == "done"


def test_stars_in_an_address_mean_nothing():
    assert LTR.verbatim("e.com/*a*") == "e.com/*a*"


def test_where_lines_may_end():
    assert breakable("colour-blind - 5") == "colour-\u2060blind - 5"
    assert breakable("a" * 36) == "a" * 36
    assert breakable("a" * 37).count("\u200b") == 6
    assert "\u200b" not in breakable("漢" * 100 + "ا" * 100)
    assert "-\u200b" not in breakable("abcde-" * 20)


def test_after_some_elements_marks_stay_text():
    prose = Prose("ltr", most=3)
    assert (
        prose.inline("**a** [*b*](e.com)")
        == '<strong>a</strong><a href="https://e.com"> <em>b</em></a>'
    )
    assert prose.warning is None
    assert prose.inline("שלום **c** [x](javascript:y)") == "שלום **c** [x](javascript:y)"
    assert prose.warning is not None


def test_plain_text_has_no_marks():
    assert plain("**Ann**-*Sophie* [x](https://e.com) <b>") == "Ann-Sophie x <b>"
