"""The abusers, in a separate process: `python -m benchmarks.soak.attack`.

Reads instructions as JSON from stdin, prints the counts of answers at the start and every second,
and ends when stdin is closed.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from typing import Any

from benchmarks.soak.abuser import Abuser
from benchmarks.soak.abusers import ABUSERS
from benchmarks.soak.target import Target


async def main() -> None:
    instructions = json.loads(sys.stdin.readline())
    abusers = [make(name, instructions) for name in instructions["abusers"]]
    for abuser in abusers:
        abuser.build()
    print_answers(abusers)
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(abuser.run()) for abuser in abusers]
        printing = group.create_task(print_regularly(abusers))
        await asyncio.to_thread(sys.stdin.read)
        for task in (*running, printing):
            task.cancel()
    print_answers(abusers)
    # Exits without a clean shutdown, so that connections end as those of abusers do.
    os._exit(0)


def make(name: str, instructions: dict[str, Any]) -> Abuser:
    kind = ABUSERS[name]
    if kind.of_heatsync:
        return kind(Target(**instructions["heatsync"]))
    # Each abuser has its own address, because together they exceed the connections of one address.
    source = f"127.0.1.{1 + list(ABUSERS).index(name)}"
    return kind(Target(**instructions["service"] | {"source": source}))


async def print_regularly(abusers: list[Abuser]) -> None:
    while True:
        await asyncio.sleep(1)
        print_answers(abusers)


def print_answers(abusers: list[Abuser]) -> None:
    print(json.dumps({abuser.name: abuser.answers for abuser in abusers}), flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
