"""Where answers name a business."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.sites.answers import BusinessNames, mentions_of, names_business, names_of
from apps.sites.models import Fact, Facts

CASUAL = BusinessNames(("Business Casual",), "business-casual.example")


def texts(answer: str, name: str | None = None, domain: str | None = None) -> list[str]:
    names = BusinessNames((name,) if name else (), domain)
    return [mention.text for mention in mentions_of(answer, names)]


# Whole words


@pytest.mark.parametrize(
    ("answer", "name", "found"),
    [
        ("Pineapple, apples and applet", "Apple", []),
        ("APPLE, apple and Apple.", "Apple", ["APPLE", "apple", "Apple"]),
        ("Apple's and Apple’s", "Apple", ["Apple", "Apple"]),
        ("the Apples' and the Apples’ shop", "Apple", ["Apples", "Apples"]),
        ("Starbucks' coffee", "Starbucks", ["Starbucks"]),
        ("the café d'Apple, l’Apple", "Apple", ["Apple", "Apple"]),
        ("Apple2 and 2Apple and Apple-2", "Apple", ["Apple"]),
        ("@apple #apple", "Apple", ["apple", "apple"]),
        ("Apple™, Apple® and Apple¹²", "Apple", ["Apple", "Apple", "Apple"]),
        ("Apple", "Apple™", ["Apple"]),
        ("7-Eleven or 7 Eleven, not 17-Eleven", "7-Eleven", ["7-Eleven", "7 Eleven"]),
    ],
)
def test_a_mention_is_a_whole_word(answer: str, name: str, found: list[str]) -> None:
    assert texts(answer, name) == found


@pytest.mark.parametrize(
    "answer",
    [
        "Business Casual",
        "business  casual",
        "Business-Casual",
        "Business‑Casual",
        "Business\u00a0Casual",
        "Business\nCasual",
        "**Business Casual**",
        "**Business** *Casual*",
        "__Business Casual__",
        "_Business Casual_",
        "`Business Casual`",
        "~~Business Casual~~",
        "“Business Casual”",
        "[Business Casual](https://other.example/list)",
        "### 1. Business Casual",
        "| Business Casual | Portland |",
        "Busi\u00adness Casual",
        "Business\u200b Casual",
        "ＢＵＳＩＮＥＳＳ Casual",
    ],
)
def test_forms_of_writing_make_no_difference(answer: str) -> None:
    assert len(mentions_of(answer, CASUAL)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "business, casual or formal",
        "We do business. Casual clothes are fine.",
        "- Business\n- Casual",
        "Business\n\nCasual",
        "Businesscasual",
        "Business/Casual",
    ],
)
def test_words_that_are_only_near_each_other_are_no_mention(answer: str) -> None:
    assert mentions_of(answer, CASUAL) == []


# Letters


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("Cafe Creme", "Café Crème"),
        ("Cafe\u0301 Crème", "Café Creme"),
        ("Strasse 7", "Straße 7"),
        ("SMORREBROD", "Smørrebrød"),
        ("Lodz Kolo", "Łódź Koło"),
        ("İSTANBUL KEBAP", "Istanbul Kebap"),
        ("istanbul kebap", "İstanbul Kebap"),
        ("ISPARTA", "ısparta"),
        ("Œuvre Ægir", "Oeuvre Aegir"),
        ("ΚΑΦΈΣ ΑΘΉΝΑ", "Καφές Αθήνα"),
        ("КОФЕЙНЯ ПУШКИН", "Кофейня Пушкин"),
    ],
)
def test_case_and_accents_make_no_difference(answer: str, name: str) -> None:
    assert texts(answer, name) == [answer]


def test_a_name_does_not_end_inside_a_letter() -> None:
    assert texts("Groß", "Gros") == []
    assert texts("Groß", "Gross") == ["Groß"]
    assert texts("㍿", "株式") == []


@pytest.mark.parametrize(
    ("answer", "name", "found"),
    [
        ("青山珈琲は有名です", "青山珈琲", ["青山珈琲"]),
        ("私は株式会社青山珈琲が好き", "青山珈琲株式会社", ["青山珈琲"]),
        ("パイナップル、アップルパイ、アップル", "アップル", ["アップル"]),
        ("我喜欢Acme的咖啡", "Acme", ["Acme"]),
        ("삼성전자는 좋다", "삼성전자", ["삼성전자"]),
        ("한국삼성전자", "삼성전자", []),
        ("ร้านกาแฟอร่อยมาก", "กาแฟ", ["กาแฟ"]),
        ("काफी और काफ", "काफ", ["काफ"]),
    ],
)
def test_scripts_without_spaces(answer: str, name: str, found: list[str]) -> None:
    assert texts(answer, name) == found


# Legal forms and marks


@pytest.mark.parametrize(
    "name",
    [
        *("Acme Inc.", "Acme, Inc", "ACME LLC", "Acme Ltd.", "Acme Limited", "Acme GmbH"),
        *("Acme GmbH & Co. KG", "Acme S.A.", "Acme SA", "Acme Oy", "Acme AG", "Acme A/S"),
        *("Acme S.r.l.", "Acme B.V.", "Acme Pty Ltd", "Acme Sp. z o.o.", "Acme d.o.o."),
        *("Acme Sdn Bhd", "Acme Corp.", "Acme S.A. de C.V.", "ООО Acme", "Acme 株式会社"),
    ],
)
def test_legal_forms_are_optional_on_both_sides(name: str) -> None:
    assert texts("Try Acme.", name) == ["Acme"]
    assert texts(f"Try {name}", "Acme")[0].casefold() == "acme"


@pytest.mark.parametrize(
    ("name", "answer", "found"),
    [
        ("Coffee Co.", "coffee", []),
        ("Coffee Co.", "The Coffee Co. is nice", ["Coffee Co"]),
        ("Blue Bottle Coffee Co.", "Blue Bottle Coffee", ["Blue Bottle Coffee"]),
        ("The Company", "a company", []),
        ("The Limited", "limited", []),
        ("Limited", "Limited", ["Limited"]),
    ],
)
def test_a_form_that_is_the_name_stays(name: str, answer: str, found: list[str]) -> None:
    assert texts(answer, name) == found


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("Johnson & Johnson", "Johnson and Johnson"),
        ("Johnson and Johnson", "johnson & johnson"),
        ("AT&T", "AT & T"),
        ("Joe's Pizza", "Joe’s Pizza"),
        ("Joe's Pizza", "Joes Pizza"),
        ("A.T.U.", "ATU"),
        ("E*TRADE", "E*Trade"),
        ("Yahoo!", "Yahoo"),
    ],
)
def test_marks_inside_names_are_loose(name: str, answer: str) -> None:
    assert texts(answer, name) == [answer]


def test_an_article_may_be_left_out_if_the_rest_has_capitals() -> None:
    assert texts("Try Home Depot.", "The Home Depot") == ["Home Depot"]
    assert texts("a home depot", "The Home Depot") == []
    assert texts("the home depot", "The Home Depot") == ["the home depot"]


@pytest.mark.parametrize("name", ["X", "!!!", "", " ", "&", "C++"])
def test_a_name_that_is_too_short_matches_nothing(name: str) -> None:
    assert texts("X !!! & C++ and c", name) == []


# The domain


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("acme.com", ["acme.com"]),
        ("ACME.com.", ["ACME.com"]),
        ("www.acme.com/menu?x=1", ["www.acme.com"]),
        ("https://shop.acme.com:443/", ["shop.acme.com"]),
        ("(acme.com), <acme.com>", ["acme.com", "acme.com"]),
        ("info@acme.com", ["acme.com"]),
        ("notacme.com my-acme.com acme.company acme.com.evil.example acme.com-shop.example", []),
        ("acme.community, acme.comx", []),
        ("acmeXcom", []),
    ],
)
def test_the_domain_is_a_mention(answer: str, found: list[str]) -> None:
    assert texts(answer, domain="acme.com") == found
    assert all(it.kind == "domain" for it in mentions_of(answer, BusinessNames((), "acme.com")))


def test_an_international_domain_has_two_forms() -> None:
    answer = "müller.de or xn--mller-kva.de, but not muller.de"
    assert texts(answer, domain="xn--mller-kva.de") == ["müller.de", "xn--mller-kva.de"]


def test_a_name_inside_another_address_is_no_mention() -> None:
    assert texts("apple.org, https://a.example/apple-pie, x@apple.org", "Apple", "apple.com") == []
    assert texts("[Best cafés](https://a.example/business-casual)", "Business Casual") == []
    assert texts("Booking.com", "Booking.com") == ["Booking.com"]


def test_a_name_and_its_domain_in_one_place_count_once() -> None:
    assert texts("acme.com", "Acme", "acme.com") == ["acme.com"]
    assert texts("[Acme](https://acme.com/)", "Acme", "acme.com") == ["Acme"]
    assert texts("[here](https://acme.com/)", "Acme", "acme.com") == ["acme.com"]
    assert texts("Acme (acme.com)", "Acme", "acme.com") == ["Acme", "acme.com"]


@pytest.mark.parametrize(
    ("site", "domain"),
    [
        ("https://www.Acme.com/menu", "acme.com"),
        ("acme.com", "acme.com"),
        ("http://127.0.0.1:8123/", "127.0.0.1"),
        ("https://shop.acme.co.uk.", "shop.acme.co.uk"),
        ("http://[::1", None),
        ("", None),
    ],
)
def test_names_come_from_facts_and_the_address(site: str, domain: str | None) -> None:
    fact = Fact(value="Acme", page=site, words="Acme", method="title")
    assert names_of(Facts(business_name=fact), site) == BusinessNames(("Acme",), domain)
    assert names_of(Facts(), site).names == ()


# Place, rank and sentence

LISTED = """Portland has many:

1. **Stumptown Coffee** – strong espresso.
2. **Heart Roasters**: light roasts.
   - **Location:** Burnside
3. [Business Casual](https://x.example) (Pearl) - calm. Business Casual opens at 7 a.m. daily.
4. Coava Coffee, Grand Ave
"""


def test_the_rank_is_the_place_among_listed_businesses() -> None:
    first, second = mentions_of(LISTED, CASUAL)
    assert (first.rank, first.ranked_by, second.rank) == (3, "business", 3)
    assert LISTED[first.start : first.end] == first.text == "Business Casual"
    assert second.sentence == "Business Casual opens at 7 a.m. daily."


def test_without_a_list_the_rank_is_the_number_of_the_sentence() -> None:
    answer = "Portland is great. Acme Inc. is one. Go to Business Casual on Main St. for tea."
    (mention,) = mentions_of(answer, CASUAL)
    assert (mention.rank, mention.ranked_by) == (3, "sentence")
    assert mention.sentence == "Go to Business Casual on Main St. for tea."


def test_the_own_name_at_the_head_does_not_count_as_another_business() -> None:
    (mention,) = mentions_of("1. Business Casual\n2. Heart Roasters", CASUAL)
    assert mention.rank == 1


def test_a_sentence_is_not_longer_than_500_characters() -> None:
    (mention,) = mentions_of("Business Casual " + "very " * 500, CASUAL)
    assert len(mention.sentence) <= 500


def test_an_answer_with_very_many_mentions_has_a_bounded_list() -> None:
    assert len(mentions_of("Business Casual. " * 500, CASUAL)) == 50


# Any text

ANY = st.text(max_size=200)
PARTS = st.lists(
    st.sampled_from(
        ["Business", "Casual", " ", "-", "*", "\n", "ß", "İ", "[", "](", ")", "x.y", "1. "]
    ),
    max_size=30,
).map("".join)


@given(ANY | PARTS, ANY)
def test_mentions_lie_in_the_answer_in_order(answer: str, name: str) -> None:
    mentions = mentions_of(answer, BusinessNames((name, "Business Casual"), "x.y"))
    assert [it.start for it in mentions] == sorted({it.start for it in mentions})
    for mention in mentions:
        assert 0 <= mention.start < mention.end <= len(answer)
        assert answer[mention.start : mention.end] == mention.text
        assert mention.rank >= 1
    for one, other in pairwise(mentions):
        assert one.end <= other.start


@given(st.text(st.characters(categories=["Lu", "Ll"]), min_size=2, max_size=20))
def test_a_name_is_found_between_spaces_and_not_inside_a_word(name: str) -> None:
    names = BusinessNames((name,), None)
    if names_business(name, names):
        assert names_business(f"Try {name} now", names)
        assert not names_business(f"Q{name}Q", names) or len(name) < 3


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "answer",
    [
        "[" * 16_000,
        "business " * 2_000,
        "a." * 8_000,
        "*" * 16_000,
        "1. **" * 3_000,
        "www." * 4_000,
    ],
)
def test_a_hostile_answer_is_read_at_once(answer: str) -> None:
    mentions_of(answer, CASUAL)
