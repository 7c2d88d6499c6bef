"""Runs a soak test: `python -m benchmarks.soak --minutes 20 --only json,headers`."""

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
from benchmarks.soak.environment import (
    ABUSER,
    TENANT,
    VISITOR,
    Environment,
    can_replace_dns,
    start_servers,
)
from benchmarks.soak.gauges import Connections, Gauge
from benchmarks.soak.latency import Latencies, quantile
from benchmarks.soak.outcome import Outcome
from benchmarks.soak.tenant import Tenant
from benchmarks.soak.visitor import Visitor
from tests.invariants import file_violations, violations

RESULTS = Path(__file__).parents[1] / "results" / "soak"
MINUTE = 60.0
GAP = 0.5
# Time for pools to fill and modules to load.
WARM_UP = 2.0
# The tenant is measured alone before the abuse begins, as a baseline.
ALONE = 60.0
LAG_GAP = 0.05
# How long servers have to release connections and file handles after the abuse.
RECOVERY = 90.0
DNS_ABUSERS = {"notify-names", "webhook-names", "discover-names"}


def main() -> None:
    options = parse()
    if skipped := set() if can_replace_dns() else DNS_ABUSERS & set(options.only):
        print(f"Skipped, because only root on Linux can replace DNS: {', '.join(sorted(skipped))}")
    abusers = [name for name in options.only if name not in skipped]
    heatsync = any(ABUSERS[name].of_heatsync for name in abusers)
    with start_servers(options.dsn, heatsync=heatsync) as environment:
        outcome = asyncio.run(soak(environment, abusers, options.minutes))
        check_data(environment, outcome)
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


async def soak(environment: Environment, abusers: list[str], minutes: float) -> Outcome:
    tenant, visitor = Latencies(), Latencies()
    calling = [
        Tenant(environment.service.url, environment.keys["normal"], TENANT, tenant).run(),
        measure_lag(tenant),
    ]
    if environment.heatsync:
        calling.append(Visitor(environment.heatsync.url, VISITOR, visitor).run())
    async with asyncio.TaskGroup() as group:
        callers = [group.create_task(call) for call in calling]
        await asyncio.sleep(WARM_UP)
        tenant.forget()
        await asyncio.sleep(min(ALONE, minutes * MINUTE / 10))
        alone = quantile(tenant.all_of(Tenant.PLAIN), 0.99)
        attack = await start_attack(environment, abusers)
        tenant.forget()
        visitor.forget()
        outcome = new_outcome(environment, attack, minutes, tenant, visitor)
        outcome.p99_alone = alone
        reading = group.create_task(read_answers(attack, outcome))
        await watch(outcome, minutes * MINUTE)
        await end_attack(attack, outcome)
        await reading
        for caller in callers:
            caller.cancel()
    await recover(outcome)
    return outcome


async def measure_lag(latencies: Latencies) -> None:
    """Measures the delay of this process itself, which is part of every figure."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LAG_GAP
        await asyncio.sleep(LAG_GAP)
        latencies.taken["(lag of the generator)"].append(loop.time() - due)


def new_outcome(
    environment: Environment, attack: Process, minutes: float, tenant: Latencies, visitor: Latencies
) -> Outcome:
    gauges = {name: Gauge(server.pid) for name, server in environment.servers.items()}
    gauges |= {"abusers": Gauge(attack.pid), "tenant and visitor": Gauge(os.getpid())}
    outcome = Outcome(minutes, tenant, visitor, gauges, Connections(environment.dsn))
    sample(outcome, gauges)
    outcome.files_before = {name: gauges[name].files for name in environment.servers}
    outcome.connections_before = outcome.connections.now
    return outcome


def sample(outcome: Outcome, processes: Iterable[str]) -> None:
    for name in processes:
        outcome.gauges[name].look()
    outcome.connections.look()


async def start_attack(environment: Environment, abusers: list[str]) -> Process:
    command = (sys.executable, "-m", "benchmarks.soak.attack")
    attack = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, start_new_session=True
    )
    keys = {"key": environment.keys["abuser"], "second_key": environment.keys["second-abuser"]}
    instructions = {"abusers": abusers} | {
        name: {"host": "127.0.0.1", "port": server.port, "source": ABUSER} | keys
        for name, server in environment.servers.items()
    }
    assert attack.stdin
    attack.stdin.write(json.dumps(instructions).encode() + b"\n")
    assert attack.stdout
    if not await attack.stdout.readline():
        raise RuntimeError("The abusers did not start.")
    return attack


async def read_answers(attack: Process, outcome: Outcome) -> None:
    assert attack.stdout
    async for line in attack.stdout:
        counts: dict[str, Any] = json.loads(line)
        outcome.answers = {name: Counter(answers) for name, answers in counts.items()}


async def watch(outcome: Outcome, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    began = reported = loop.time()
    while outcome.seconds < seconds:
        await asyncio.sleep(GAP)
        await asyncio.to_thread(sample, outcome, outcome.gauges)
        outcome.seconds = loop.time() - began
        if loop.time() - reported >= MINUTE:
            reported = loop.time()
            print(report.progress(outcome), flush=True)


async def end_attack(attack: Process, outcome: Outcome) -> None:
    assert attack.stdin
    if attack.returncode is not None:
        outcome.broken.append("The process of the abusers ended too early.")
    attack.stdin.close()
    await attack.wait()


async def recover(outcome: Outcome) -> None:
    """Waits until connections and file handles return to their earlier numbers."""
    deadline = asyncio.get_running_loop().time() + RECOVERY
    while not outcome.has_recovered and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(GAP)
        sample(outcome, outcome.files_before)
        outcome.has_recovered = outcome.is_back


def check_data(environment: Environment, outcome: Outcome) -> None:
    """Stops the servers first, so that nothing is in flight."""
    for server in environment.servers.values():
        server.stop()
    with psycopg.connect(environment.dsn, autocommit=True) as conn:
        outcome.broken += violations(conn)
        outcome.broken += file_violations(conn, environment.files)


if __name__ == "__main__":
    main()
