"""Prompts that users give or edit."""

import pytest
from pydantic import TypeAdapter

from apps.sites.answers import BusinessNames, names_of
from apps.sites.prompts import GivenPrompt, edited_prompts, prompts_of
from batchmill import InvalidPayload
from tests.apps.sites.prompts.business import CAFE, SITE

NAMES = BusinessNames(("Business Casual",), "business-casual.example")
FORMED = prompts_of(CAFE, SITE)


def test_the_prompts_of_a_run_can_be_given_again() -> None:
    given = [GivenPrompt(id=prompt.id, text=prompt.text) for prompt in FORMED]
    assert edited_prompts(given, names_of(CAFE, SITE), FORMED) == FORMED
    texts = [prompt.text for prompt in FORMED]
    assert edited_prompts(texts, NAMES, FORMED) == FORMED


def test_an_edited_prompt_keeps_its_id_and_loses_its_facts() -> None:
    (edited,) = edited_prompts([GivenPrompt(id="best", text="Where is tea?")], NAMES, FORMED)
    assert (edited.id, edited.kind, edited.facts) == ("best", "generic", [])


def test_a_new_prompt_has_an_id_that_depends_on_its_text_alone() -> None:
    first, second = edited_prompts(["Where is tea?", "Is Business Casual good?"], NAMES)
    assert [first, second] == edited_prompts([second.text, " Where is tea? "], NAMES)[::-1]
    assert (first.kind, second.kind) == ("generic", "direct")
    assert first.id.startswith("own-") and first.id != second.id


def test_a_prompt_may_be_given_as_text_or_as_an_object() -> None:
    read = TypeAdapter(list[GivenPrompt]).validate_json('["a", {"id": "best", "text": "b"}]')
    assert [(it.id, it.text) for it in read] == [(None, "a"), ("best", "b")]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ([], "prompts"),
        ([f"Question {n}?" for n in range(8)], "prompts"),
        (["a", " "], "prompts[1].text"),
        (["x" * 501], "prompts[0].text"),
        (["a\nb"], "prompts[0].text"),
        (["a\x00b"], "prompts[0].text"),
        (["a\ud800"], "prompts[0].text"),
        (["a\u2028b"], "prompts[0].text"),
        ([GivenPrompt(id="UPPER", text="a")], "prompts[0].id"),
        ([GivenPrompt(id="", text="a")], "prompts[0].id"),
        ([GivenPrompt(id="x" * 41, text="a")], "prompts[0].id"),
        ([GivenPrompt(id="a", text="a"), GivenPrompt(id="a", text="b")], "prompts[1]"),
        (["a", "a"], "prompts[1]"),
    ],
)
def test_prompts_that_are_not_valid_are_refused(given: list, path: str) -> None:
    with pytest.raises(InvalidPayload) as refused:
        edited_prompts(given, NAMES)
    assert refused.value.path == path


def test_the_limits_are_allowed() -> None:
    assert len(edited_prompts([f"{n} " + "x" * 498 for n in range(7)], NAMES)) == 7
