"""What a careful reader finds in three invented calls must be found, and hardly anything else."""

import pytest

from apps.calls.analysis import Analysis, analyse
from tests.apps.calls.conversations import (
    APPOINTMENT,
    DELIVERY_COMPLAINT,
    REPAIR_SHOP,
    lines_of,
    transcript_of,
)

CALLS = pytest.mark.parametrize(
    "call",
    [REPAIR_SHOP, DELIVERY_COMPLAINT, APPOINTMENT],
    ids=["repair", "delivery", "appointment"],
)
# In each call. "The driver will pick up the broken one" is no complaint, for example.
MOST_FALSE_SENTIMENTS = 1


def expected(call: str, sign: str) -> set[str]:
    found = {line.text for line in lines_of(call) if sign in line.signs}
    assert found, "A test without examples shows nothing."
    return found


def found(call: str) -> Analysis:
    return analyse(transcript_of(call))


@CALLS
def test_all_questions_are_found_and_no_others(call: str) -> None:
    assert {item.quote.text for item in found(call).questions.items} == expected(call, "?")


@CALLS
@pytest.mark.parametrize(("kind", "sign"), [("promise", "P"), ("request", "R")])
def test_all_action_items_are_found_and_no_others(call: str, kind: str, sign: str) -> None:
    items = [item for item in found(call).action_items.items if item.kind == kind]
    assert {item.quote.text for item in items} == expected(call, sign)


@CALLS
@pytest.mark.parametrize(("sign", "factor"), [("+", 1), ("-", -1)])
def test_the_sign_of_every_sentiment_is_right(call: str, sign: str, factor: int) -> None:
    points = {p.quote.text for p in found(call).sentiment.points if p.score * factor > 0}
    assert expected(call, sign) <= points
    assert len(points - expected(call, sign)) <= MOST_FALSE_SENTIMENTS


def test_the_deadlines_are_found() -> None:
    def deadlines(call: str) -> list[str]:
        return [item.due for item in found(call).action_items.items if item.due]

    assert deadlines(REPAIR_SHOP) == [
        "Thursday at 8 a.m.",
        "by 5 p.m. on Thursday",
        "this afternoon",
    ]
    assert deadlines(DELIVERY_COMPLAINT) == ["by Friday", "within three business days", "today"]
    assert deadlines(APPOINTMENT) == ["Wednesday at 10:30", "by Monday", "tonight"]


def test_the_key_phrases_tell_what_the_calls_are_about() -> None:
    def phrases(call: str) -> list[str]:
        return [item.phrase for item in found(call).key_phrases.items]

    assert phrases(REPAIR_SHOP)[:2] == ["brake pads", "brake"]
    assert phrases(DELIVERY_COMPLAINT)[:4] == ["oak table", "driver", "order", "delivery"]
    assert {"appointment", "Weber", "referral", "form", "treatment"} <= set(phrases(APPOINTMENT))


def test_the_summaries_contain_the_reason_of_the_call_and_no_greetings() -> None:
    def summary(call: str) -> list[str]:
        return [item.text for item in found(call).summary.items]

    assert "My brakes have been making a terrible grinding noise since Monday." in summary(
        REPAIR_SHOP
    )
    assert "I ordered an oak table three weeks ago and it never arrived." in summary(
        DELIVERY_COMPLAINT
    )
    assert (
        "Dr. Weber has a free slot on Wednesday at 10:30 and one on Thursday at 2 p.m."
        in summary(APPOINTMENT)
    )
    for call in (REPAIR_SHOP, DELIVERY_COMPLAINT, APPOINTMENT):
        assert 3 <= len(summary(call)) <= 5
        assert not any(
            word in text for text in summary(call) for word in ("?", "calling", "welcome")
        )


def test_the_unhappy_caller_is_the_least_happy_one() -> None:
    scores = [
        found(call).sentiment.speakers[1].score or 0.0
        for call in (DELIVERY_COMPLAINT, APPOINTMENT, REPAIR_SHOP)
    ]
    assert scores[0] == min(scores) < 0
