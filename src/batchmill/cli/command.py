"""Commands are async functions. They get a session first, and may return an exit code.

This module adds the options that all commands share, so they can stand before or after the
command's name. It also turns every error into one sentence and an exit code.
"""

import asyncio
import inspect
import signal
import traceback
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import Parameter, Signature
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.text import Text

from batchmill.cli.exits import ExitCode, exit_code_of
from batchmill.cli.output import note
from batchmill.cli.session import Session
from batchmill.errors import BatchmillError

Dsn = Annotated[
    str | None,
    typer.Option(
        help="The database URL. Default: DATABASE_URL, or the embedded server.", show_default=False
    ),
]
App = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME", help="Your mill. Default: BATCHMILL_APP.", show_default=False
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the stack trace of an error.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

T = TypeVar("T")
Function = Callable[..., Coroutine[Any, Any, ExitCode | None]]


def group(name: str, help: str) -> typer.Typer:
    return typer.Typer(name=name, help=help, no_args_is_help=True)


def add(
    app: typer.Typer,
    function: Function,
    name: str | None = None,
    *,
    json: bool = True,
    panel: str | None = None,
) -> None:
    """Makes a function a command; `json` means that it prints data."""
    app.command(name, rich_help_panel=panel)(_with_session(function, json=json))


def add_listing(app: typer.Typer, function: Function) -> None:
    """Makes a function the command `list` of a group, and the default command of the group."""
    alone = app.callback(invoke_without_command=True, no_args_is_help=False, help=app.info.help)
    alone(_with_session(function, json=True))
    add(app, function, "list")


def shared_options(
    ctx: typer.Context, dsn: Dsn = None, app: App = None, debug: Debug = False
) -> None:
    ctx.obj = {"dsn": dsn, "app": app, "debug": debug}


def _with_session(function: Function, *, json: bool) -> Callable[..., None]:
    @wraps(function)
    def run(ctx: typer.Context, **given: Any) -> None:
        ctx.obj = {name: given.pop(name) or ctx.obj[name] for name in ctx.obj}
        if ctx.invoked_subcommand is None:
            raise typer.Exit(_run(function, ctx.obj, given))

    _, *own = inspect.signature(function).parameters.values()
    shared = inspect.signature(shared_options).parameters.values()
    asked = [Parameter("json", Parameter.KEYWORD_ONLY, default=False, annotation=Json)]
    parameters = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY)
        for parameter in [*own, *(asked if json else []), *shared]
    ]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _run(function: Function, shared: dict[str, Any], given: dict[str, Any]) -> ExitCode:
    with reported(shared["debug"]):
        session = Session(shared["dsn"], shared["app"], given.pop("json", False))
        return asyncio.run(_orderly(function(session, **given))) or ExitCode.DONE
    raise AssertionError("unreachable")


async def _orderly(work: Coroutine[Any, Any, T]) -> T:
    """Handles SIGTERM like Ctrl-C, so that the embedded server stops too."""
    task = asyncio.ensure_future(work)
    with suppress(RuntimeError):  # Only the main thread hears signals.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Turns exceptions into one sentence and an exit code."""
    try:
        yield
    except BatchmillError as error:
        _fail(_one_line(error), exit_code_of(error), trace=debug)
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except asyncio.CancelledError:
        raise typer.Exit(ExitCode.TERMINATED) from None
    except Exception as error:
        text = f"{type(error).__name__}: {_one_line(error)}"
        hint = (
            ""
            if debug
            else " (unexpected error; run the command again with --debug to see the stack trace)"
        )
        _fail(text + hint, ExitCode.UNEXPECTED, trace=debug)


def _fail(text: str, code: ExitCode, *, trace: bool) -> NoReturn:
    if trace:
        traceback.print_exc()
    note(Text.assemble(("error: ", "bold red"), text))
    raise typer.Exit(code) from None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
