"""The abusers, in a process of their own: `python -m benchmarks.soak.attack`.

Takes what to do as JSON on stdin, writes a line of counts when it begins and every second, and ends
when stdin does.
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
    order = json.loads(sys.stdin.readline())
    abusers = [make(name, order) for name in order["abusers"]]
    for abuser in abusers:
        abuser.build()
    tell(abusers)
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(abuser.run()) for abuser in abusers]
        counting = group.create_task(count(abusers))
        await asyncio.to_thread(sys.stdin.read)
        for task in (*running, counting):
            task.cancel()
    tell(abusers)
    # Their connections end as those of abusers do.
    os._exit(0)


def make(name: str, order: dict[str, Any]) -> Abuser:
    kind = ABUSERS[name]
    if kind.of_heatsync:
        return kind(Target(**order["heatsync"]))
    # All abusers together have more connections than one address may have.
    source = f"127.0.1.{1 + list(ABUSERS).index(name)}"
    return kind(Target(**order["service"] | {"source": source}))


async def count(abusers: list[Abuser]) -> None:
    while True:
        await asyncio.sleep(1)
        tell(abusers)


def tell(abusers: list[Abuser]) -> None:
    print(json.dumps({abuser.name: abuser.answers for abuser in abusers}), flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
