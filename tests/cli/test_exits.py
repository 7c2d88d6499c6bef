"""Each kind of error has an exit code. Stack traces are shown only with `--debug`."""

import asyncio
import inspect
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from batchmill import errors
from batchmill.cli import command
from batchmill.cli.app import app
from batchmill.cli.exits import MEANINGS, ExitCode, exit_code_of
from batchmill.store.overview import OverviewStore
from tests.cli.conftest import SHOP, Cli

MISSING = "00000000-0000-0000-0000-000000000000"
INSIDE_HANDLERS = (errors.LeaseLost, errors.HandlerError)


def test_the_exit_codes_do_not_change_and_the_help_lists_them() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "DONE": 0,
        "WORK_FAILED": 1,
        "BAD_INPUT": 2,
        "NOT_FOUND": 3,
        "NOT_USABLE": 4,
        "CONFLICT": 5,
        "UNEXPECTED": 70,
        "INTERRUPTED": 130,
        "TERMINATED": 143,
    }
    text = CliRunner().invoke(app, ["--help"]).stdout
    for code, meaning in MEANINGS.items():
        assert f"{code}  {meaning}" in text


def test_every_error_that_reaches_a_command_has_an_exit_code() -> None:
    ours = {
        kind
        for kind in vars(errors).values()
        if inspect.isclass(kind) and issubclass(kind, errors.BatchmillError)
    }
    for kind in ours - {errors.BatchmillError}:
        if issubclass(kind, INSIDE_HANDLERS):
            continue
        assert exit_code_of(kind.__new__(kind)) is not ExitCode.UNEXPECTED, kind


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UnknownTask("x"), ExitCode.BAD_INPUT),
        (errors.IdempotencyConflict("x"), ExitCode.CONFLICT),
        (errors.EmbeddedError("x"), ExitCode.NOT_USABLE),
        (errors.ConfigurationError("x"), ExitCode.BAD_INPUT),
        (errors.JobCancelled("x", error_code="x", job_id=1), ExitCode.WORK_FAILED),
        (RuntimeError("x"), ExitCode.UNEXPECTED),
    ],
)
def test_the_most_specific_error_class_decides_the_exit_code(
    error: Exception, code: ExitCode
) -> None:
    assert exit_code_of(error) is code


@pytest.mark.usefixtures("shop_mill")
@pytest.mark.parametrize(
    ("code", "args", "sentence"),
    [
        (2, "submit nope 1", 'No task "nope" is registered'),
        (2, "submit pack text", "payload 1: $: Invalid JSON"),
        (2, "submit pack", "There is nothing to submit"),
        (2, "submit pack 1 --delay soon", '"soon" is not a valid duration'),
        (2, "submit pack 1 --run-at soon", '"soon" is not a valid time'),
        (2, "submit pack 1 --label x", "A label must be name=value"),
        (2, "submit pack 1 --single --limit 3", "--limit is for a batch only"),
        (2, "submit pack 1 --dedup-key x", "--dedup-key is for a --single job only"),
        (2, "submit pack 1 2 --single", "--single takes one payload"),
        (2, f"submit pack 1 --app {SHOP}", "payload 1: $: Input should be an object"),
        (2, "limits set nonsense --slots 1", '"nonsense" is not a valid limit name'),
        (2, "limits set task:pack", "Nothing to set"),
        (2, "limits set task:pack --slots many", "--slots must be a whole number of at least 0"),
        (2, "limits set task:* --slots 1", "tenant:*, batch:*, key:*, task:NAME/tenant:*"),
        (2, "limits set task:pack --rate 0/1", "The starts of a rate must be"),
        (2, "limits set task:pack --rate fast", '"fast" is not a valid rate'),
        (2, f"watch {MISSING} --after 3", "--after needs --json"),
        (2, "cancel nonsense", "neither the id of a job (a number) nor of a batch"),
        (2, "worker", "No application is given"),
        (2, "worker --app nowhere:mill", "There is no module nowhere"),
        (2, "worker --app tests.cli.shop", "--app must be module:name"),
        (2, "worker --app tests.cli.shop:missing", "shop:missing does not exist"),
        (2, "worker --app tests.cli.shop:nothing", "shop:nothing is a str, not a Mill"),
        (2, f"worker --app {SHOP} --pool fetch=1", "There is a pool for fetch"),
        (2, f"worker --app {SHOP} --pool pack=none", "A pool must be name=number"),
        (2, f"worker --app {SHOP} --pool pack=0", "The pool of pack must be greater than 0"),
        (2, f"worker --app {SHOP} --grace -1", "grace must be at least 0, not -1"),
        (2, f"worker --app {SHOP} --prefetch -1", "prefetch must be at least 0, not -1"),
        (2, f"worker --app {SHOP} --concurrency 0", "concurrency must be greater than 0"),
        (2, f"worker --app {SHOP} --at-most 50s", "Add --until-empty, or omit --at-most"),
        (2, f"worker --app {SHOP} --until-empty --at-most soon", '"soon" is not a valid duration'),
        (2, f"worker --app {SHOP} --until-empty --at-most -5s", '"-5s" is not a valid duration'),
        (3, "watch nonsense", 'There is no batch "nonsense"'),
        (3, f"watch {MISSING}", f"There is no batch {MISSING}"),
        (3, f"cancel {MISSING}", f"There is no batch {MISSING}"),
        (3, f"retry {MISSING}", f"There is no batch {MISSING}"),
        (3, "job 1", "There is no job 1"),
        (3, "priority nothing 5", 'There is no task "nothing"'),
        (3, "retry 1", "There is no job 1"),
        (3, "resume task:pack", 'There is no limit "task:pack"'),
        (3, "limits reset tenant:x", 'There is no limit "tenant:x"'),
        (3, "schedules pause nope", 'There is no schedule "nope"'),
    ],
)
async def test_an_error_is_reported_in_one_line(
    cli: Cli, code: int, args: str, sentence: str
) -> None:
    result = await cli(*args.split())
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("args", ["jobs --state nonsense", "job one", "no-such-command"])
async def test_wrong_usage_is_bad_input(cli: Cli, args: str) -> None:
    assert (await cli(*args.split())).exit_code == ExitCode.BAD_INPUT


async def test_a_database_that_does_not_answer_is_not_usable() -> None:
    result = await Cli("postgresql://nobody@127.0.0.1:1/nothing")("status")
    assert result.exit_code == ExitCode.NOT_USABLE
    assert result.stderr.startswith("error: Postgres does not answer")


@pytest.mark.parametrize("name", ["status", "demo", "migrate up"])
async def test_an_invalid_database_address_is_bad_input_and_is_not_printed(name: str) -> None:
    for dsn in ("nonsense://hidden", "hidden", "postgresql://me:hid/den@host/x"):
        result = await Cli(dsn)(*name.split(), "--debug")
        assert result.exit_code == ExitCode.BAD_INPUT
        assert "error: The database URL is not valid" in result.stderr
        assert "hid" not in result.stderr


async def test_the_doctor_reports_an_invalid_database_address_without_printing_it() -> None:
    result = await Cli("hidden")("doctor")
    assert result.exit_code == ExitCode.NOT_USABLE
    assert "is not valid" in result.stdout and "hidden" not in result.output


async def test_the_error_for_a_missing_schema_names_the_command_to_run(empty_dsn: str) -> None:
    for name in ("status", "demo"):
        result = await Cli(empty_dsn)(name)
        assert result.exit_code == ExitCode.NOT_USABLE
        assert "Run `batchmill migrate up`" in result.stderr


async def test_retrying_a_job_that_has_not_failed_is_a_conflict(cli: Cli) -> None:
    job = (await cli.lines("submit", "--app", SHOP, "--single", "pack", '{"number": 1}'))[0]
    result = await cli("retry", job)
    assert result.exit_code == ExitCode.CONFLICT
    assert result.stderr == f"error: Job {job} has not failed, so it cannot be retried.\n"


async def test_an_unexpected_error_is_one_line_that_recommends_debug(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(OverviewStore, "overview", fail)
    result = await cli("status")
    assert result.exit_code == ExitCode.UNEXPECTED
    assert result.stderr == (
        "error: ZeroDivisionError: by zero "
        "(unexpected error; run the command again with --debug to see the stack trace)\n"
    )
    assert "Traceback" in (await cli("status", "--debug")).stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt, ExitCode.INTERRUPTED), (asyncio.CancelledError, ExitCode.TERMINATED)],
)
def test_an_interruption_has_its_own_exit_code(error: type[BaseException], code: ExitCode) -> None:
    with pytest.raises(command.typer.Exit) as exit, command.reported(debug=False):
        raise error
    assert exit.value.exit_code == code


def test_an_invalid_environment_variable_is_explained_in_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "batchmill", "status"],
        env=os.environ | {"BATCHMILL_POOLER": "session"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == ExitCode.BAD_INPUT
    message = 'error: BATCHMILL_POOLER is "session". Set it to auto, none or transaction.\n'
    assert done.stderr == message
