"""Telephone numbers and e-mail addresses."""

import pytest

from apps.sites.facts import facts_of
from tests.apps.sites.drawing import crawl, html, jsonld


def phones(*bodies: str) -> list[str]:
    return [fact.value for fact in facts_of(crawl(*bodies)).contact.phones]


def emails(*bodies: str) -> list[str]:
    return [fact.value for fact in facts_of(crawl(*bodies)).contact.emails]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("(317) 585-8468", ["(317) 585-8468"]),
        ("317-585-8468", ["317-585-8468"]),
        ("1-800-555-0199", ["1-800-555-0199"]),
        ("Ring +44 113 496 0000 now", ["+44 113 496 0000"]),
        ("+49 (0)30 1234567", ["+49 (0)30 1234567"]),
        ("Tel: 0113 496 0000", ["0113 496 0000"]),
        ("Telefon: 030 / 123 45 67", ["030 / 123 45 67"]),
        ("Call us on 0113 496 0000.", ["0113 496 0000"]),
        ("0113 496 0000", []),
        ("T: 0113 496 0000", ["0113 496 0000"]),
        ("Fax: (317) 585-8468", []),
        ("Tel: (512) 471-5883 | Fax: (512) 471-5908", ["(512) 471-5883"]),
        ("Fax: +44 113 496 0000", []),
        ("Order 317-585-84689", []),
        ("ISBN 978-3-16-148410-0", []),
        ("2023-05-12 10:30", []),
        ("phone 12345", []),
        ("Tel: 0000000000", []),
        ("VAT 123-456-7890", []),
    ],
)
def test_numbers_in_text(text: str, numbers: list[str]):
    assert phones(html(f"<p>{text}</p>")) == numbers


def test_data_then_links_then_text_and_each_number_once():
    thing = jsonld(
        {
            "@type": "Bakery",
            "name": "A",
            "telephone": "+1 317 585 8468",
            "contactPoint": {"telephone": "+1 317 585 0000"},
        }
    )
    body = html(
        f'{thing}<a href="tel:+13175858468">call</a><a href="tel:+13175851111">call</a><p>(317) 585-8468</p>'
    )
    found = facts_of(crawl(body)).contact.phones
    assert [(fact.value, fact.method) for fact in found] == [
        ("+1 317 585 8468", "json-ld"),
        ("+1 317 585 0000", "json-ld"),
        ("+13175851111", "text"),
    ]


def test_links_with_escapes_and_parameters():
    assert phones('<a href="tel:+1%20317%20585%208468;ext=5">x</a>') == ["+1 317 585 8468"]
    assert emails('<a href="mailto:Info@Shop.example?subject=Hi">x</a>') == ["Info@Shop.example"]


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("Write to info@shop.example.", ["info@shop.example"]),
        ("a.b+c@mail.shop.example, x", ["a.b+c@mail.shop.example"]),
        ("logo@2x.png", []),
        ("@handle", []),
        ("info@shop", []),
        ("INFO@shop.example info@shop.example", ["INFO@shop.example"]),
    ],
)
def test_emails_in_text(text: str, addresses: list[str]):
    assert emails(html(f"<p>{text}</p>")) == addresses


def test_nonsense_in_data_is_left_out():
    thing = jsonld(
        {
            "@type": "Bakery",
            "name": "A",
            "telephone": ["call us!", "<script>"],
            "email": ["x", "mailto:a@b.example"],
        }
    )
    assert phones(thing) == []
    assert emails(thing) == ["a@b.example"]
