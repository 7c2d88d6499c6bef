"""The businesses that answers list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.sites.answers.lists import listed_in


def names(answer: str) -> list[str]:
    return [item.name for item in listed_in(answer)]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("1. Acme\n2. Foo Bar", ["Acme", "Foo Bar"]),
        ("1) **Acme** – good\n2) __Foo Bar__: better", ["Acme", "Foo Bar"]),
        ("1. **Acme:** good\n2. **[Foo Bar](https://foo.example)** x", ["Acme", "Foo Bar"]),
        ("### 1. Acme\nText\n### 2. Foo Bar", ["Acme", "Foo Bar"]),
        ("**1. Acme**\n**2. Foo Bar**", ["Acme", "Foo Bar"]),
        ("1️⃣ Acme\n2️⃣ Foo Bar", ["Acme", "Foo Bar"]),
        ("1. ☕ Acme (Pearl)\n2. Foo Bar, Main St", ["Acme", "Foo Bar"]),
        ("- Acme: good\n* Foo Bar - better\n• Baz", ["Acme", "Foo Bar", "Baz"]),
        ("- **Acme**\n  - **Location:** here\n- **Foo**", ["Acme", "Foo"]),
        (
            "| Name | City |\n|---|---|\n| **Acme** | X |\n| Foo Bar | Y |\n\nEnd",
            ["Acme", "Foo Bar"],
        ),
        ("Try **Acme** or **Foo Bar**.", ["Acme", "Foo Bar"]),
        ("1. 青山珈琲：有名\n2. 猿田彦珈琲（恵比寿）", ["青山珈琲", "猿田彦珈琲"]),
        ("1. Acme Inc.\n2. ACME", ["Acme Inc"]),
        ("1. Café de la Paix\n2. The House of Tea", ["Café de la Paix", "The House of Tea"]),
    ],
)
def test_names_at_the_head_of_items(answer: str, found: list[str]) -> None:
    assert names(answer) == found


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Acme is good, and so is Foo Bar.",
        "1. Check recent reviews\n2. Visit Yelp\n3. Ask friends",
        "- **Location:** here\n- **Opening hours:** 9 to 5\n- Price range: low",
        "**Note**: this is **very good** and **Pros:** none",
        "- great coffee\n- friendly staff",
        "1. What is your budget?\n2. 2024\n3. …",
        "1. They have been roasting their own beans since the year they opened the first shop",
        "| Name | City |",
    ],
)
def test_what_is_no_name_is_left_out(answer: str) -> None:
    assert names(answer) == []


def test_numbered_items_hide_bullets_and_bold_text() -> None:
    assert names("1. Acme\n- Wine Bar\n\n**Try Something**") == ["Acme"]


@given(st.text(max_size=300))
def test_items_lie_in_the_answer(answer: str) -> None:
    for item in listed_in(answer):
        assert 0 <= item.start < len(answer)
        assert 2 <= len(item.name) <= 60
