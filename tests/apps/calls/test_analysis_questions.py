"""Questions by mark, form and tag, and statements that look like them."""

import pytest

from apps.calls.analysis.questions import questions_of
from tests.apps.calls.calls import sentence


def sign(text: str, *, is_english: bool = True) -> str | None:
    items = questions_of([sentence(text)], is_english=is_english).items
    return items[0].sign if items else None


@pytest.mark.parametrize(
    "text", ["Is it ready?", "The blue one?", "Why?", 'Did he say "when?"', "Your name (please?)"]
)
def test_a_question_mark_makes_a_question(text: str) -> None:
    assert sign(text) == "mark"


@pytest.mark.parametrize(
    "text",
    [
        "what is your last name",
        "Okay, and how can I help you.",
        "So how soon can we bring it in.",
        "can you hear me",
        "Do you have parking.",
        "does that include breakfast",
        "Is my car ready.",
        "Sure, did the police come.",
        "Jack, what was your number.",
        "If it is broken, can you fix it.",
        "which one would you prefer.",
        "when will it be ready",
        "how much does it cost",
        "what time do you open",
        "what dates are you looking at",
        "Isn't there anyone who can come.",
        "may i ask who is calling",
        "What about Friday.",
        "should we wait",
        "what happened",
        "thank you for calling how may i help you",
    ],
)
def test_the_form_makes_a_question(text: str) -> None:
    assert sign(text) == "form"


@pytest.mark.parametrize(
    "text",
    ["You have my address, don't you.", "it was late wasn't it", "You didn't call, did you."],
)
def test_a_tag_makes_a_question(text: str) -> None:
    assert sign(text) == "tag"


@pytest.mark.parametrize(
    "text",
    [
        "What a day.",
        "What I need is the form.",
        "What happened was an accident.",
        "When you arrive, call me.",
        "Which is fine.",
        "Which means you can come.",
        "I spoke to Ann, who is the manager.",
        "Should you need help, call us.",
        "Had I known that, I would have called.",
        "Do the same with the other one.",
        "Do your best.",
        "Have the car ready.",
        "Don't you worry about that.",
        "How nice.",
        "You like it, so do I.",
        "I know what it is.",
        "I can do that.",
        "Will is the manager.",
        "That's what you are.",
        "Am I glad to hear that!",
        "No, I don't.",
        "It is on the right.",
        "May the best one win.",
        "You can wait, but please do it soon.",
    ],
)
def test_statements_are_no_questions(text: str) -> None:
    assert sign(text) is None


@pytest.mark.parametrize("text", ["Okay?", "Hello?", "Yeah, right?", "Sorry?"])
def test_a_reaction_with_a_question_mark_is_none(text: str) -> None:
    assert sign(text) is None


@pytest.mark.parametrize("text", ["Wie geht es Ihnen?", "元気ですか？", "كيف حالك؟"])
def test_in_other_languages_only_the_mark_counts(text: str) -> None:
    assert sign(text, is_english=False) == "mark"
    assert questions_of([], is_english=False).method == "rules: question marks only"


def test_in_other_languages_english_forms_mean_nothing() -> None:
    assert sign("what is your last name", is_english=False) is None


def test_a_question_quotes_its_sentence() -> None:
    found = questions_of([sentence("Is it ready?", 1.23456, 2, 2)], is_english=True)
    [item] = found.items
    assert item.quote.model_dump() == {
        "speaker": 2,
        "start": 1.235,
        "end": 2.0,
        "text": "Is it ready?",
    }
    assert (found.method, item.method) == ("rules", "rules")
