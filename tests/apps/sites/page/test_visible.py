"""What a reader without scripts sees."""

import pytest

from apps.sites.page.visible import MOST_TEXT
from tests.apps.sites.drawing import page


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p><p>two</p>", "one\ntwo"),
        ("<div>one<div>two</div>three</div>", "one\ntwo\nthree"),
        ("<b>one</b><i>two</i>", "onetwo"),
        ("<b>one</b> <i>two</i>", "one two"),
        ("<b>one </b> <i> two</i>", "one two"),
        ("one<br>two<br/><br/>three", "one\ntwo\nthree"),
        ("  a \n\t b &nbsp; c  ", "a b c"),
        (
            "<table><tr><td>Mon</td><td>9-5</td></tr><tr><td>Tue</td><td>9-6</table>",
            "Mon 9-5\nTue 9-6",
        ),
        ("<ul><li>a<li>b</ul>", "a\nb"),
        ("<dl><dt>a<dd>b</dl>", "a\nb"),
        ("<p>one<p>two<div>three</p>four", "one\ntwo\nthreefour"),
        ("a&shy;b\u200bc", "abc"),
        ("Fish &amp; Chips &lt;b&gt; &#233;", "Fish & Chips <b> é"),
        ("<button>Order</button>", "Order"),
        ("<details><summary>More</summary>Inside</details>", "More\nInside"),
    ],
)
def test_text(html: str, text: str):
    assert page(html).text == text


@pytest.mark.parametrize(
    "html",
    [
        "<title>x</title>",
        "<script>x</script>",
        "<script type=application/ld+json>{}</script>",
        "<style>x</style>",
        "<template>x<p>y</p></template>",
        "<p hidden>x</p>",
        "<div hidden><p>x</p></div>",
        '<p style="color:red; DISPLAY : none">x</p>',
        '<p style="visibility:hidden">x</p>',
        "<dialog>x</dialog>",
        "<!-- x -->",
        "<iframe>x</iframe>",
        "<svg><text>x</text><title>y</title></svg>",
        "<select><option>x</select>",
        "<textarea>x</textarea>",
        "<video>x</video>",
        "<input value=x>",
        "<img alt=x src=y>",
    ],
)
def test_what_cannot_be_seen_is_not_text(html: str):
    assert page(f"<p>before</p>{html}<p>after</p>").text == "before\nafter"


@pytest.mark.parametrize(
    "html",
    [
        "<noscript>x</noscript>",
        '<p hidden="until-found">x</p>',
        "<dialog open>x</dialog>",
        '<p aria-hidden="true">x</p>',
        '<p style="display:block">x</p>',
        '<p class="hidden">x</p>',
    ],
)
def test_what_readers_without_scripts_or_styles_see_is_text(html: str):
    assert "x" in page(html).text


def test_broken_html_is_read():
    read = page("<p>one<b>two</p>three</b></i><li>four</table></body>five<div class='unclosed")
    assert read.text.split() == ["onetwo", "three", "four", "five"]


def test_headings_in_order():
    read = page("<h1>A <b>b</b></h1><h3>C</h3><h2 hidden>no</h2><h2></h2><h6>D\n e</h6><h7>no</h7>")
    assert [(each.level, each.text) for each in read.headings] == [(1, "A b"), (3, "C"), (6, "D e")]


def test_a_heading_that_is_an_image_has_its_alternative_text():
    assert (
        page('<h1><a href=/><img src=logo.png alt="Blue Door"></a></h1>').headings[0].text
        == "Blue Door"
    )


def test_a_heading_that_is_not_closed_does_not_hold_the_next_one():
    texts = [each.text for each in page("<h1>One<h2>Two</h2>").headings]
    assert texts == ["One", "Two"]


def test_images_with_their_alternative_texts():
    read = page(
        "<img src=a.png alt='A  cup'><img src=/b.png><img src=c.png alt=''><img src=data:x,y>"
        "<img src=data:x,y data-src=d.png alt=D><img src=e.png role=presentation>"
        "<img src=p.gif width=1 height=1><noscript><img src=n.png></noscript><img><img src=a.png alt='A cup'>",
        "https://shop.example/menu/",
    )
    assert [(each.url.removeprefix("https://shop.example"), each.alt) for each in read.images] == [
        ("/menu/a.png", "A cup"),
        ("/b.png", None),
        ("/menu/c.png", ""),
        ("/menu/d.png", "D"),
        ("/menu/e.png", ""),
    ]


def test_long_text_is_cut_and_reported():
    read = page("<p>word</p>" * 60_000)
    assert len(read.text) <= MOST_TEXT
    assert "characters of text" in read.problems[0]
