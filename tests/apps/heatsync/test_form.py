"""The fields of the submitted form."""

import pytest

from apps.heatsync.answers import Refusal
from apps.heatsync.form import name_in, swimmer_in, urls_in


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
def test_a_name_is_required(text: str) -> None:
    with pytest.raises(Refusal, match=r"Swimmer name is required\."):
        swimmer_in(text)


def test_spaces_in_a_name_are_normalised() -> None:
    assert swimmer_in("  Zoë   O’Neil-Smith ") == "Zoë O’Neil-Smith"


@pytest.mark.parametrize(
    "text",
    [
        "nonsense", "{}", '"https://a.example/x.pdf"', "[1]", "[null]", '["ftp://a.example/x"]',
        '["javascript:alert(1)"]', '["https://"]', '["http://[::1"]', '["https://a.example/\\u0000"]',
        "[" * 100_000, '["https://a.example/' + "x" * 3_000 + '"]', "true", "12",
    ],
)  # fmt: skip
def test_an_invalid_list_of_urls_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        urls_in(text)
    assert b"INVALID_URLS" in refused.value.answer.body


@pytest.mark.parametrize("text", ["", "  ", "[]"])
def test_the_list_of_urls_may_be_empty(text: str) -> None:
    assert urls_in(text) == []


def test_duplicate_urls_count_once() -> None:
    given = '["https://a.example/1.pdf", " https://a.example/1.pdf#page=2", "http://b.example/"]'
    assert urls_in(given) == ["https://a.example/1.pdf", "http://b.example/"]


def test_the_name_of_a_file_is_the_last_part_of_its_url() -> None:
    assert name_in("https://a.example/meets/Heat%20Sheet.pdf?x=1") == "Heat Sheet.pdf"
    assert name_in("https://a.example/") == "a.example"
