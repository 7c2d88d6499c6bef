"""Reading with a model: only what the sheet confirms is accepted. The endpoint is a real server."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from apps.heatsync.ai import client_of, read_with_model
from apps.heatsync.codes import code_of
from apps.heatsync.models import Extraction
from apps.heatsync.reader import SwimmerNotFound
from apps.heatsync.settings import AiSettings
from batchmill import ModelBadAnswer
from batchmill.domain.failure import classify
from tests.apps.heatsync.web import Answer, serving

TEXT = """Spring Meet - 3/7/2026
Event 12 Girls 11-12 100 SC Meter Freestyle
Heat 3 of 5 Finals Starts at 09:12 AM
4 Doe, Jane 12 Sharks-XX 1:05.32
5 Roe, Mary 11 Orcas-XX 1:06.10
Event 14 Girls 11-12 50 SC Meter Butterfly
Heat 1 of 2 Finals
2 Doe, Jane 12 Sharks-XX NT
"""


def swim(**more: Any) -> dict[str, Any]:
    return {
        "eventNumber": "12",
        "eventName": "Girls 11-12 100 SC Meter Freestyle",
        "heatNumber": 3,
        "lane": 4,
        "swimmerName": "Doe, Jane",
        "seedTime": "1:05.32",
    } | more


SECOND = {
    "eventNumber": "14",
    "eventName": "Girls 11-12 50 SC Meter Butterfly",
    "heatNumber": 1,
    "lane": 2,
    "seedTime": "NT",
}


async def read(answer: Answer, text: str = TEXT, swimmer: str = "Jane Doe") -> Extraction:
    async with serving({"/v1/chat/completions": answer}) as web:
        settings = AiSettings(base_url=f"{web.url}/v1", api_key="sk-secret", model="any")
        return await read_with_model(text, swimmer, client_of(settings))


def model_answer(*swims: dict[str, Any]) -> bytes:
    content = {
        "swimmerName": "Doe, Jane",
        "meetName": "Spring Meet",
        "sessionDate": "2026-03-07",
        "venue": None,
        "events": swims,
    }
    return json.dumps({"choices": [{"message": {"content": json.dumps(content)}}]}).encode()


async def test_swims_that_the_sheet_confirms_are_accepted() -> None:
    found = await read(model_answer(swim(), swim(**SECOND)))
    assert [each.event_number for each in found.events] == ["12", "14"]
    assert (found.meet_name, found.warnings) == ("Spring Meet", [])


@pytest.mark.parametrize(
    "wrong",
    [
        {"eventNumber": "13"},
        {"eventNumber": "14"},
        {"heatNumber": 2},
        {"lane": 5},
        {"seedTime": "1:05.00"},
        {"swimmerName": "Roe, Mary", "lane": 5, "seedTime": "1:06.10"},
        {"swimmerName": "Doe, Janet"},
        {"lane": None, "seedTime": None},
        {"eventName": "Girls 11-12 100 SC Meter Backstroke"},
    ],
)
async def test_swims_that_the_sheet_does_not_confirm_are_left_out_with_a_warning(
    wrong: dict[str, Any],
) -> None:
    found = await read(model_answer(swim(**SECOND), swim(**wrong)))
    assert [each.event_number for each in found.events] == ["14"]
    assert "1 of the AI model's entries" in found.warnings[0]


async def test_a_team_in_brackets_must_be_the_one_in_the_sheet() -> None:
    ours, theirs = (swim(team=team) for team in ("Sharks-XX", "Orcas-XX"))
    (found,) = (await read(model_answer(ours), swimmer="Jane Doe (Sharks-XX)")).events
    assert found.team == "Sharks-XX"
    for answer in (ours, theirs):
        with pytest.raises(SwimmerNotFound):
            await read(model_answer(answer), swimmer="Jane Doe (Orcas-XX)")


async def test_times_and_days_that_are_not_in_the_sheet_are_removed() -> None:
    right = swim(heatStartTime="09:12", sessionDate="2026-03-07")
    (found,) = (await read(model_answer(right))).events
    assert (found.heat_start_time, str(found.session_date)) == ("09:12", "2026-03-07")
    for wrong in ("9:12", "21:12", "5:45 PM"):
        (found,) = (
            await read(model_answer(swim(heatStartTime=wrong, sessionDate="2031-01-01")))
        ).events
        assert (found.heat_start_time, found.session_date) == (None, None)


@pytest.mark.parametrize("time", ["25:06", "24:00", "09:99"])
async def test_an_impossible_time_of_day_in_the_sheet_is_not_accepted_as_a_start(time: str) -> None:
    text = TEXT.replace("09:12 AM", time)
    (found,) = (await read(model_answer(swim(heatStartTime=time)), text)).events
    assert found.heat_start_time is None


async def test_an_answer_without_a_confirmed_swim_means_that_the_swimmer_is_not_found() -> None:
    for answer in (model_answer(), model_answer(swim(lane=8))):
        with pytest.raises(SwimmerNotFound):
            await read(answer)


@pytest.mark.parametrize(
    "answer",
    [b"", b"{}", b"[]", b'{"choices": []}', b'{"choices": [{"message": {"content": "Sorry"}}]}'],
)
async def test_an_answer_in_the_wrong_format_fails_the_extraction(answer: bytes) -> None:
    with pytest.raises(ModelBadAnswer) as raised:
        await read(answer)
    assert code_of(raised.value.code) == "EXTRACTION_FAILED"


@pytest.mark.parametrize(
    ("status", "code", "transient"),
    [
        (429, "RATE_LIMIT", True),
        (500, "SERVICE_UNAVAILABLE", True),
        (503, "SERVICE_UNAVAILABLE", True),
        (504, "TIMEOUT", True),
        (529, "AI_OVERLOADED", True),
        (401, "NOT_ALLOWED", False),
    ],
)
async def test_an_error_of_the_endpoint_has_the_code_and_kind_of_its_status(
    status: int, code: str, transient: bool
) -> None:
    with pytest.raises(Exception) as raised:
        await read(status)
    failure = classify(raised.value, now=datetime.now(UTC))
    assert (code_of(failure.code), failure.transient) == (code, transient)
    assert "sk-secret" not in failure.message + failure.detail


async def test_the_request_contains_the_text_the_name_and_the_schema_of_the_answer() -> None:
    requests: list[Any] = []

    async def answer(body: bytes) -> bytes:
        requests.append(json.loads(body))
        return model_answer(swim())

    await read(answer)
    (question,) = requests
    prompt = question["messages"][-1]["content"]
    assert "Jane Doe" in prompt and TEXT in prompt
    assert "eventNumber" in json.dumps(question["response_format"])
