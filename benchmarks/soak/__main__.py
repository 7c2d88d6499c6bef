"""Runs a soak: `python -m benchmarks.soak --minutes 20 --only json,headers`."""

import argparse
import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.soak import report
from benchmarks.soak.abusers import ABUSERS
from benchmarks.soak.gauges import Connections, Gauge
from benchmarks.soak.latency import Latencies, quantile
from benchmarks.soak.outcome import Outcome
from benchmarks.soak.stage import ABUSER, TENANT, VISITOR, Stage, is_silent, staged
from benchmarks.soak.tenant import Tenant
from benchmarks.soak.visitor import Visitor
from tests.invariants import file_violations, violations

RESULTS = Path(__file__).parents[1] / "results" / "soak"
MINUTE = 60.0
GAP = 0.5
# Pools fill, modules are loaded.
WARM_UP = 2.0
# Before the abuse begins, the tenant is measured alone: what this machine gives at best.
ALONE = 60.0
LAG_GAP = 0.05
# How long servers have to get back to where they were.
RECOVERY = 90.0
NAMES = {"notify-names", "webhook-names", "discover-names"}


def main() -> None:
    options = parse()
    if left_out := set() if is_silent() else NAMES & set(options.only):
        print(f"Left out, as only root on Linux can silence DNS: {', '.join(sorted(left_out))}")
    abusers = [name for name in options.only if name not in left_out]
    heatsync = any(ABUSERS[name].of_heatsync for name in abusers)
    with staged(options.dsn, heatsync=heatsync) as stage:
        outcome = asyncio.run(soak(stage, abusers, options.minutes))
        check_data(stage, outcome)
    print(report.markdown(outcome))
    report.write(outcome, options.results)
    sys.exit(1 if outcome.misses() else 0)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--only", type=names, default=list(ABUSERS), help=", ".join(ABUSERS))
    parser.add_argument("--dsn", default=os.environ.get("DATABASE_URL") or None)
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def names(text: str) -> list[str]:
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := set(chosen) - ABUSERS.keys():
        raise argparse.ArgumentTypeError(f"There is no abuser {', '.join(sorted(unknown))}.")
    return chosen


async def soak(stage: Stage, abusers: list[str], minutes: float) -> Outcome:
    tenant, visitor = Latencies(), Latencies()
    calling = [
        Tenant(stage.service.url, stage.keys["normal"], TENANT, tenant).run(),
        notice_lag(tenant),
    ]
    if stage.heatsync:
        calling.append(Visitor(stage.heatsync.url, VISITOR, visitor).run())
    async with asyncio.TaskGroup() as group:
        callers = [group.create_task(call) for call in calling]
        await asyncio.sleep(WARM_UP)
        tenant.forget()
        await asyncio.sleep(min(ALONE, minutes * MINUTE / 10))
        alone = quantile(tenant.all_of(Tenant.PLAIN), 0.99)
        attack = await start_attack(stage, abusers)
        tenant.forget()
        visitor.forget()
        outcome = begin(stage, attack, minutes, tenant, visitor)
        outcome.p99_alone = alone
        telling = group.create_task(listen(attack, outcome))
        await watch(outcome, minutes * MINUTE)
        await end_attack(attack, outcome)
        await telling
        for caller in callers:
            caller.cancel()
    await recover(outcome)
    return outcome


async def notice_lag(latencies: Latencies) -> None:
    """How late this process itself is: what the machine adds to every figure."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LAG_GAP
        await asyncio.sleep(LAG_GAP)
        latencies.taken["(lag of the generator)"].append(loop.time() - due)


def begin(
    stage: Stage, attack: Process, minutes: float, tenant: Latencies, visitor: Latencies
) -> Outcome:
    gauges = {name: Gauge(server.pid) for name, server in stage.servers.items()}
    gauges |= {"abusers": Gauge(attack.pid), "tenant and visitor": Gauge(os.getpid())}
    outcome = Outcome(minutes, tenant, visitor, gauges, Connections(stage.dsn))
    look(outcome, gauges)
    outcome.files_before = {name: gauges[name].files for name in stage.servers}
    outcome.connections_before = outcome.connections.now
    return outcome


def look(outcome: Outcome, processes: Iterable[str]) -> None:
    for name in processes:
        outcome.gauges[name].look()
    outcome.connections.look()


async def start_attack(stage: Stage, abusers: list[str]) -> Process:
    command = (sys.executable, "-m", "benchmarks.soak.attack")
    attack = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, start_new_session=True
    )
    keys = {"key": stage.keys["abuser"], "accomplice": stage.keys["accomplice"]}
    order = {"abusers": abusers} | {
        name: {"host": "127.0.0.1", "port": server.port, "source": ABUSER} | keys
        for name, server in stage.servers.items()
    }
    assert attack.stdin
    attack.stdin.write(json.dumps(order).encode() + b"\n")
    assert attack.stdout
    if not await attack.stdout.readline():
        raise RuntimeError("The abusers did not start.")
    return attack


async def listen(attack: Process, outcome: Outcome) -> None:
    assert attack.stdout
    async for line in attack.stdout:
        found: dict[str, Any] = json.loads(line)
        outcome.answers = {name: Counter(answers) for name, answers in found.items()}


async def watch(outcome: Outcome, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    began = told = loop.time()
    while outcome.seconds < seconds:
        await asyncio.sleep(GAP)
        await asyncio.to_thread(look, outcome, outcome.gauges)
        outcome.seconds = loop.time() - began
        if loop.time() - told >= MINUTE:
            told = loop.time()
            print(report.progress(outcome), flush=True)


async def end_attack(attack: Process, outcome: Outcome) -> None:
    assert attack.stdin
    if attack.returncode is not None:
        outcome.broken.append("The abusers' process ended before its time.")
    attack.stdin.close()
    await attack.wait()


async def recover(outcome: Outcome) -> None:
    """Until connections and file handles are where they were, or there was time enough for it."""
    deadline = asyncio.get_running_loop().time() + RECOVERY
    while not outcome.has_recovered and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(GAP)
        look(outcome, outcome.files_before)
        outcome.has_recovered = outcome.is_back


def check_data(stage: Stage, outcome: Outcome) -> None:
    """With the servers stopped, so that nothing is under way."""
    for server in stage.servers.values():
        server.stop()
    with psycopg.connect(stage.dsn, autocommit=True) as conn:
        outcome.broken += violations(conn)
        outcome.broken += file_violations(conn, stage.files)


if __name__ == "__main__":
    main()
