from typing import Any

import pytest

from batchmill.domain.payload import Codec
from batchmill.domain.signature import Signature
from batchmill.domain.task import Place, Task
from batchmill.errors import InvalidInput, PayloadTooLarge


def double(n: int) -> int:
    return 2 * n


def task(**options: Any) -> Task[..., Any]:
    given = {"name": "double", "place": Place.THREAD} | options
    signature = Signature.of(double)
    codecs = {"payload": Codec(signature.payload), "result": Codec(signature.result)}
    return Task(function=double, signature=signature, **codecs, **given)


def test_a_task_is_called_like_the_function_it_was_made_from():
    assert task()(21) == 42


@pytest.mark.parametrize("name", ["a", "extract_text", "v2.extract-text", "0", "x" * 100])
def test_names_that_read_well_everywhere_are_taken(name: str):
    assert task(name=name).name == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a/b", "a:b", "ä", "a\n", "x" * 101])
def test_any_other_name_is_refused(name: str):
    with pytest.raises(InvalidInput, match="is no task name: use up to 100 letters"):
        task(name=name)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_takes_some_time(timeout: float):
    with pytest.raises(InvalidInput, match="The timeout of double must be over 0 seconds"):
        task(timeout=timeout)


def test_memory_is_limited_only_in_a_process():
    task(memory=2**20, place=Place.PROCESS)
    with pytest.raises(InvalidInput, match="limits its memory, which only a process can"):
        task(memory=2**20)


def test_a_payload_over_the_tasks_own_limit_is_refused():
    assert task(payload_limit=3).dump(999) == "999"
    with pytest.raises(PayloadTooLarge):
        task(payload_limit=3).dump(1000)


def test_the_key_is_made_from_the_payload_as_the_handler_sees_it():
    assert task(key=lambda n: f"mod {n % 3}").key_of("7") == "mod 1"


def test_a_task_without_a_key_puts_all_its_jobs_in_one_place():
    assert task().key_of("7") == ""


@pytest.mark.parametrize("key", ["", "x" * 501, "\0", "\ud800", None, 7])
def test_a_key_is_a_short_text_that_can_be_stored(key: Any):
    with pytest.raises(InvalidInput, match="The key of a job of double must be a short text"):
        task(key=lambda _: key).key_of("7")
