"""Shows the pools and the statistics in the terminal: `python -m apps.sites.show`."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

from apps.sites.mill import mill
from apps.sites.pools import read_pools
from apps.sites.statistics import read_statistics
from batchmill.cli import out, table

MINUTES = 60
NUMBERS = ("waiting", "running", "oldestSeconds", "completed", "failed", "perMinute")
TIMES = ("waitSeconds", "runSeconds")


async def main() -> None:
    async with mill:
        pools, numbers = await read_pools(None), await read_statistics(MINUTES)
    out().print(table("pool", "size", "busy", "idle", "error", rows=pool_lines(pools)))
    titles = ("waiting", "running", "oldest s", "completed", "failed", "per minute")
    percentiles = ("wait p50 s", "wait p95 s", "run p50 s", "run p95 s")
    lines = ([each["phase"], *cells(each)] for each in numbers["phases"])
    rows = [*lines, ["total", *cells(numbers["total"])]]
    out().print(table("phase", *titles, *percentiles, rows=rows))


def pool_lines(pools: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    for pool in pools:
        states = Counter(
            each["state"] for server in pool["servers"] for each in server["processors"]
        )
        size = "unlimited" if pool["size"] is None else str(pool["size"])
        yield pool["phase"], size, *(str(states[name]) for name in ("busy", "idle", "error"))


def cells(numbers: dict[str, Any]) -> list[str]:
    times = [numbers[name][percent] for name in TIMES for percent in ("p50", "p95")]
    return [shown(value) for value in (*(numbers[name] for name in NUMBERS), *times)]


def shown(value: float | None) -> str:
    return "–" if value is None else str(value) if isinstance(value, int) else f"{value:.3g}"


if __name__ == "__main__":
    asyncio.run(main())
