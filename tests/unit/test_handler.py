import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

import pytest
from pydantic import BaseModel

from batchmill.domain.handler import HandlerSignature
from batchmill.domain.payload import Codec
from batchmill.errors import InvalidInput, InvalidPayload

T = TypeVar("T")


class Job: ...


class SyncJob: ...


class Advance(Generic[T]): ...


class Snooze: ...


class Sheet(BaseModel):
    url: str


@dataclass
class Schedule:
    events: int


def signature(function: Callable[..., Any]) -> HandlerSignature:
    return HandlerSignature.of(function, job_types=(Job, SyncJob), outcome_types=(Advance, Snooze))


class TestParameters:
    def test_a_handler_can_take_a_job_and_a_payload(self):
        async def extract(job: Job, sheet: Sheet) -> Schedule: ...

        assert signature(extract) == HandlerSignature(
            "job", ("sheet",), Sheet, Schedule, is_async=True
        )

    def test_the_job_can_have_any_position_and_name(self):
        def extract(sheet: Sheet, context: SyncJob) -> Schedule: ...

        parsed = signature(extract)
        assert (parsed.job_parameter, parsed.payload, parsed.is_async) == ("context", Sheet, False)

    def test_a_handler_can_take_only_a_payload(self):
        parsed = signature(lambda sheet: sheet)
        assert not parsed.takes_job
        assert (parsed.payload, parsed.result) == (Any, Any)

    def test_a_first_parameter_named_job_without_annotation_is_the_job(self):
        assert signature(lambda job, sheet: sheet).job_parameter == "job"
        assert signature(lambda sheet, job: sheet).job_parameter is None

    def test_a_parameter_named_job_with_another_annotation_is_the_payload(self):
        def describe(job: str) -> str: ...

        assert signature(describe).payload_parameters == ("job",)

    def test_a_handler_can_take_no_payload(self):
        async def sweep(job: Job) -> None: ...

        def tick() -> None: ...

        assert signature(sweep).payload is None
        assert signature(tick) == HandlerSignature(None, (), None, type(None), is_async=False)

    @pytest.mark.parametrize("written", ["*sheets", "**sheets", "sheet, /"])
    def test_parameters_that_cannot_be_passed_by_name_are_refused(self, written: str):
        names: dict[str, Any] = {}
        exec(f"def extract({written}): ...", names)
        with pytest.raises(InvalidInput) as refused:
            signature(names["extract"])
        assert str(refused.value).startswith(f"The handler extract takes ({written})")


class TestSeveralParameters:
    def test_several_parameters_are_one_payload_with_their_names(self):
        def add(job: Job, a: int, b: int = 2, *, raw: bytes = b"") -> int: ...

        parsed = signature(add)
        codec = Codec(parsed.payload)
        assert codec.load(codec.dump({"a": "1"})) == {"a": 1}
        assert codec.load(codec.dump({"a": 1, "raw": b"\xff"})) == {"a": 1, "raw": b"\xff"}

    @pytest.mark.parametrize(
        ("payload", "complaint"),
        [
            ({"b": 1}, r"\$\.a: Field required"),
            ({"a": 1, "bb": 2}, r"\$\.bb: Extra inputs are not permitted"),
            ({"a": 1, "b": "x"}, r"\$\.b: Input should be a valid integer"),
        ],
    )
    def test_an_invalid_payload_is_refused(self, payload: Any, complaint: str):
        def add(a: int, b: int = 2) -> int: ...

        with pytest.raises(InvalidPayload, match=complaint):
            Codec(signature(add).payload).dump(payload)

    def test_names_that_a_model_cannot_have_are_accepted(self):
        def odd(copy: int, model_name: str, _private: int) -> None: ...

        payload = {"copy": 1, "model_name": "m", "_private": 2}
        assert Codec(signature(odd).payload).load_parsed(payload) == payload


class TestArguments:
    def test_each_kind_of_handler_gets_its_arguments(self):
        def none() -> None: ...

        def one(job: Job, sheet: str) -> None: ...

        def many(job: Job, a: int, b: int = 2) -> None: ...

        job = Job()
        assert signature(none).arguments(job, None) == {}
        assert signature(one).arguments(job, "s") == {"job": job, "sheet": "s"}
        assert signature(many).arguments(job, {"a": 1}) == {"job": job, "a": 1}


class TestResult:
    @pytest.mark.parametrize(
        ("annotation", "result"),
        [
            (Schedule, Schedule),
            (Schedule | Advance | Snooze, Schedule),
            (Schedule | Advance[Sheet] | None, Schedule | None),
            (int | str | Snooze, int | str),
            (Advance, type(None)),
            (Advance | Snooze, type(None)),
            (list[int] | Snooze, list[int]),
            (NoReturn, type(None)),
            (None, type(None)),
            (Any, Any),
        ],
    )
    def test_outcomes_are_not_part_of_the_result_type(self, annotation: Any, result: Any):
        def handler(sheet: Sheet): ...

        handler.__annotations__["return"] = annotation
        assert signature(handler).result == result


class TestKindsOfCallable:
    def test_string_annotations_are_resolved(self):
        def extract(job: "Job", sheet: "Sheet | None") -> "Schedule | Advance": ...

        parsed = signature(extract)
        assert (parsed.takes_job, parsed.payload, parsed.result) == (True, Sheet | None, Schedule)

    def test_annotations_that_cannot_be_resolved_are_refused(self):
        def extract(job: Job, sheet: "Shete") -> None: ...  # noqa: F821 # pyright: ignore

        with pytest.raises(InvalidInput) as refused:
            signature(extract)
        assert "extract cannot be resolved: name 'Shete' is not defined." in str(refused.value)

    @pytest.mark.parametrize("annotation", ["int |", "Sheet.missing", "int + 1"])
    def test_annotations_that_are_not_types_are_refused(self, annotation: str):
        def extract(sheet): ...

        extract.__annotations__["sheet"] = annotation
        with pytest.raises(InvalidInput, match=r"annotations of the handler .*extract"):
            signature(extract)

    def test_a_partial_has_only_its_remaining_parameters(self):
        async def convert(client: object, job: Job, sheet: Sheet, quality: int) -> Schedule: ...

        parsed = signature(functools.partial(convert, object(), quality=90))
        assert parsed == HandlerSignature("job", ("sheet",), Sheet, Schedule, is_async=True)

    def test_an_object_with_a_call_method_is_accepted(self):
        class Converter:
            async def __call__(self, job: Job, sheet: Sheet) -> Schedule: ...

        assert signature(Converter()) == HandlerSignature("job", ("sheet",), Sheet, Schedule, True)
        assert signature(functools.partial(Converter())).is_async

    def test_a_bound_method_is_accepted(self):
        class Converter:
            async def convert(self, job: Job, sheet: Sheet) -> Schedule: ...

        parsed = signature(Converter().convert)
        assert parsed == HandlerSignature("job", ("sheet",), Sheet, Schedule, is_async=True)

    def test_a_decorated_function_has_the_original_signature(self):
        def extract(job: Job, sheet: Sheet) -> Schedule: ...

        @functools.wraps(extract)
        def timed(*args: Any, **kwargs: Any) -> Any: ...

        expected = HandlerSignature("job", ("sheet",), Sheet, Schedule, is_async=False)
        assert signature(timed) == expected
        assert signature(functools.cache(extract)) == expected
