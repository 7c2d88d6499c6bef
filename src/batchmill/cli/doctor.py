from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from rich.console import Group, RenderableType
from rich.text import Text

from batchmill.cli import checks
from batchmill.cli.checks import Finding, Level, broken
from batchmill.cli.exits import ExitCode
from batchmill.cli.output import STYLES
from batchmill.cli.session import Session
from batchmill.errors import BatchmillError


async def doctor(session: Session) -> ExitCode:
    """Check the database, the schema and the workers, and show what to do."""
    findings = [finding async for finding in examine(session)]
    is_broken = any(finding.state is Level.BROKEN for finding in findings)
    session.show(findings, lambda _: Group(*map(draw, findings)))
    return ExitCode.NOT_USABLE if is_broken else ExitCode.DONE


async def examine(session: Session) -> AsyncIterator[Finding]:
    async with AsyncExitStack() as stack:
        try:
            store = await stack.enter_async_context(session.store())
        except BatchmillError as error:
            yield broken("connection", str(error), checks.CONNECTION_ADVICE)
            return
        for check in checks.OF_THE_SERVER:
            yield await check(store)
        schema = await checks.check_schema(store, is_embedded=session.mill.settings.dsn is None)
        yield schema
        if schema.state is Level.OK:
            for check in checks.OF_THE_ENGINE:
                yield await check(store)


def draw(finding: Finding) -> RenderableType:
    line = Text.assemble(
        (f"{finding.state:<8}", STYLES[finding.state]),
        (f"{finding.check}: ", "bold"),
        finding.message,
    )
    return line.append(f"\n        → {finding.advice}") if finding.advice else line
