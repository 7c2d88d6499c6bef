"""Submitting and watching from the command line."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill import Mill
from tests.cli.conftest import SHOP, Cli
from tests.library.tools import one


def orders(*numbers: int) -> list[str]:
    return [json.dumps({"number": number}) for number in numbers]


async def test_payloads_can_be_arguments(cli: Cli, shop_mill: Mill) -> None:
    (batch_id,) = await cli.lines("submit", "pack", *orders(1, 2))
    batch = await shop_mill.batch(batch_id).get()
    assert (batch.total, batch.task, batch.tenant) == (2, "pack", "default")


async def test_payloads_can_be_lines_of_a_file_or_of_stdin(
    cli: Cli, shop_mill: Mill, tmp_path: Path
) -> None:
    file = tmp_path / "orders"
    file.write_text("\n".join(orders(1, 2, 3)) + "\n\n")
    from_file = await cli("submit", "pack", "--file", file)
    from_stdin = await cli("submit", "pack", "-", input=file.read_text())
    for result in (from_file, from_stdin):
        batch = shop_mill.batch(result.stdout.strip())
        assert [job.payload["number"] async for job in batch.jobs()] == [1, 2, 3]


@pytest.mark.parametrize("bad", [b'"\xff"', b"[1", b'{"a": NaN}', b'"\\u0000"', b'"\\ud800"'])
async def test_nothing_is_submitted_if_one_line_is_invalid(
    cli: Cli, shop_mill: Mill, sql: psycopg.Connection[Any], tmp_path: Path, bad: bytes
) -> None:
    file = tmp_path / "orders"
    file.write_bytes(b"1\n" * 3_000 + bad + b"\n")
    result = await cli("submit", "send", "--file", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert one(sql, "select count(*) from batchmill.jobs") == (0,)


async def test_payloads_are_checked_against_the_task_of_the_application(cli: Cli) -> None:
    result = await cli("submit", "--app", SHOP, "pack", *orders(1), '{"number": "many"}')
    assert result.exit_code == 2
    assert "payload 2: $.number: Input should be a valid integer" in result.stderr


async def test_options_are_stored_with_the_batch(
    cli: Cli, shop_mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    options = "--tenant acme --priority 3 --delay 2h --label day=monday --label n=1 --limit 5"
    (batch_id,) = await cli.lines(
        "submit", "pack", *orders(1), *options.split(), "--on-finish", "send", "--expires-in", "1d"
    )
    batch = await shop_mill.batch(batch_id).get()
    (job,) = [job async for job in shop_mill.batch(batch_id).jobs()]
    assert (batch.tenant, batch.labels) == ("acme", {"day": "monday", "n": "1"})
    assert (job.priority, job.state) == (3, "scheduled")
    assert (job.run_at - job.created_at).total_seconds() == 7_200
    assert one(sql, "select on_finish from batchmill.batches") == ("send",)
    limit = f"batch:{batch_id}"
    assert one(sql, "select slots from batchmill.limits where name = %s", limit) == (5,)


async def test_a_repeated_submit_with_an_idempotency_key_returns_the_same_batch(
    cli: Cli, shop_mill: Mill
) -> None:
    words = ["submit", "pack", *orders(1), "--idempotency-key", "monday"]
    first, again = await cli.json(*words), await cli.json(*words)
    assert again == {"batch_id": first["batch_id"], "existing": True}
    other = await cli("submit", "pack", *orders(2), "--idempotency-key", "monday")
    assert other.exit_code == 5


async def test_a_repeated_submit_with_a_dedup_key_returns_the_same_job(
    cli: Cli, shop_mill: Mill
) -> None:
    words = ["submit", "--single", "pack", *orders(1), "--dedup-key", "one"]
    first, again = await cli.json(*words), await cli.json(*words)
    assert first == {"job_id": first["job_id"], "duplicate": False, "cached": False}
    assert again == {"job_id": first["job_id"], "duplicate": True, "cached": False}


async def test_waiting_for_a_single_job_prints_its_result_or_error(
    cli: Cli, shop_mill: Mill
) -> None:
    async with shop_mill.running():
        good = await cli("submit", "--single", "--wait", "pack", *orders(1))
        bad = await cli("submit", "--single", "--wait", "pack", *orders(13))
    assert (good.exit_code, json.loads(good.stdout)) == (0, "sent 1")
    assert bad.exit_code == 1
    assert "error: It is [bold]sold out." in bad.stderr


async def test_waiting_for_a_batch_prints_the_final_counts(cli: Cli, shop_mill: Mill) -> None:
    async with shop_mill.running():
        result = await cli("submit", "--wait", "pack", *orders(1, 7))
    assert result.exit_code == 0
    *_, counts, state = result.stdout.splitlines()
    assert counts == "2 of 2 ended, 0 failed (pack 2 of 2, send 2 of 2)"
    assert state.endswith(" completed")


async def test_waiting_for_a_batch_with_failed_jobs_exits_with_1(cli: Cli, shop_mill: Mill) -> None:
    async with shop_mill.running():
        result = await cli("submit", "--wait", "pack", *orders(1, 13))
    assert result.exit_code == 1
    assert "failed in pack: sold_out: It is [bold]sold out." in result.stdout
    assert "batchmill retry " in result.stderr


async def test_watch_prints_every_event_as_one_line_of_json(cli: Cli, shop_mill: Mill) -> None:
    async with shop_mill.running():
        (batch_id,) = await cli.lines("submit", "pack", *orders(1, 2, 13))
        result = await cli("watch", batch_id, "--json")
        rest = await cli("watch", batch_id, "--json", "--after", 5)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["type"], events[-1]["type"]) == ("batch_started", "batch_completed")
    assert rest.stdout.splitlines() == result.stdout.splitlines()[5:]
    assert result.exit_code == 1


async def test_watching_a_cancelled_batch_exits_with_1(cli: Cli, shop_mill: Mill) -> None:
    (batch_id,) = await cli.lines("submit", "pack", *orders(1, 2))
    await cli.lines("cancel", batch_id)
    result = await cli("watch", batch_id)
    assert result.exit_code == 1
    assert result.stdout.endswith(" cancelled\n")
