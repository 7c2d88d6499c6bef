from typing import Any

import pytest

from batchmill.domain.handler import HandlerSignature
from batchmill.domain.payload import Codec
from batchmill.domain.pipeline import Pipeline
from batchmill.domain.task import Place, Task
from batchmill.errors import InvalidInput, PayloadTooLarge
from batchmill.registry import Registry


def double(n: int) -> int:
    return 2 * n


def task(**options: Any) -> Task[..., Any]:
    given = {"name": "double", "place": Place.THREAD} | options
    signature = HandlerSignature.of(double)
    codecs = {"payload": Codec(signature.payload), "result": Codec(signature.result)}
    return Task(function=double, signature=signature, **codecs, **given)


def test_a_task_can_be_called_like_its_function():
    assert task()(21) == 42


@pytest.mark.parametrize("name", ["a", "extract_text", "v2.extract-text", "0", "x" * 100])
def test_valid_names_are_accepted(name: str):
    assert task(name=name).name == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a/b", "a:b", "ä", "a\n", "x" * 101])
def test_invalid_names_are_refused(name: str):
    with pytest.raises(InvalidInput, match="is not a valid task name. Use up to 100 letters"):
        task(name=name)


@pytest.mark.parametrize("priority", [32_768, -32_769, 1.5, True, "1"])
def test_a_priority_that_is_not_a_small_whole_number_is_refused(priority: Any):
    with pytest.raises(InvalidInput, match="priority must be from -32768 to 32767"):
        task(priority=priority)


@pytest.mark.parametrize("name", ["", "a.b", "a/b", "-a", "x" * 51])
def test_the_name_of_a_pipeline_has_no_dot(name: str):
    with pytest.raises(InvalidInput, match="is not a valid name for a pipeline"):
        Pipeline(name)


def test_a_task_of_a_pipeline_is_named_after_it():
    registry, calls = Registry(), Pipeline("calls")
    assert registry.add(double, pipeline=calls).name == "calls.double"
    assert registry.add(double, pipeline=calls, name="twice").name == "calls.twice"


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_that_is_not_positive_is_refused(timeout: float):
    with pytest.raises(InvalidInput, match="The timeout of double must be greater than 0 seconds"):
        task(timeout=timeout)


def test_a_preparation_requires_a_process():
    task(prepare=list, place=Place.PROCESS)
    with pytest.raises(InvalidInput, match="has a preparation, which needs a child process"):
        task(prepare=list)


def test_a_memory_limit_requires_a_process():
    task(memory=2**20, place=Place.PROCESS)
    with pytest.raises(InvalidInput, match="has a memory limit, which needs a child process"):
        task(memory=2**20)


def test_a_payload_over_the_tasks_own_limit_is_refused():
    assert task(payload_limit=3).dump(999) == "999"
    with pytest.raises(PayloadTooLarge):
        task(payload_limit=3).dump(1000)


def test_the_key_is_computed_from_the_loaded_payload():
    assert task(key=lambda n: f"mod {n % 3}").key_of("7") == "mod 1"


def test_jobs_of_a_task_without_a_key_have_an_empty_key():
    assert task().key_of("7") == ""


@pytest.mark.parametrize("key", ["", "x" * 501, "\0", "\ud800", None, 7])
def test_an_invalid_key_is_refused(key: Any):
    with pytest.raises(
        InvalidInput, match="The key of a job of double must be a text of 1 to 500 characters"
    ):
        task(key=lambda _: key).key_of("7")
