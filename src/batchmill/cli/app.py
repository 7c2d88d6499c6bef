"""The program `batchmill`: its commands, in the order of its help."""

import typer

from batchmill.cli import actions, keys, limits, migrate, quotas, schedules, tenants
from batchmill.cli.batches import batches
from batchmill.cli.command import add, shared_options
from batchmill.cli.demo import demo
from batchmill.cli.doctor import doctor
from batchmill.cli.exits import MEANINGS
from batchmill.cli.jobs import job, jobs
from batchmill.cli.pools import pools
from batchmill.cli.priority import priority
from batchmill.cli.serve import serve
from batchmill.cli.status import status
from batchmill.cli.submit import submit
from batchmill.cli.usage import usage
from batchmill.cli.watch import watch
from batchmill.cli.worker import worker

RUN, LOOK, ACT, SET_UP = "Run", "Look", "Act", "Set up"

app = typer.Typer(
    name="batchmill",
    help="Durable batches of slow work on Postgres.",
    epilog="\n".join(
        ["Exit codes:", *(f"{code:>4}  {meaning}" for code, meaning in MEANINGS.items())]
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.callback()(shared_options)

add(app, demo, json=False, panel=RUN)
add(app, worker, json=False, panel=RUN)
add(app, serve, json=False, panel=RUN)
add(app, submit, panel=RUN)
add(app, watch, panel=LOOK)
add(app, status, panel=LOOK)
add(app, pools, panel=LOOK)
add(app, batches, panel=LOOK)
add(app, jobs, panel=LOOK)
add(app, job, panel=LOOK)
add(app, usage, panel=LOOK)
add(app, actions.retry, panel=ACT)
add(app, actions.cancel, panel=ACT)
add(app, limits.pause, panel=ACT)
add(app, limits.resume, panel=ACT)
add(app, priority, panel=ACT)
app.add_typer(limits.app, rich_help_panel=ACT)
app.add_typer(schedules.app, rich_help_panel=ACT)
app.add_typer(keys.app, rich_help_panel=SET_UP)
app.add_typer(quotas.app, rich_help_panel=SET_UP)
app.add_typer(tenants.app, rich_help_panel=SET_UP)
app.add_typer(migrate.app, rich_help_panel=SET_UP)
add(app, doctor, panel=SET_UP)


def main() -> None:
    app(prog_name="batchmill")
