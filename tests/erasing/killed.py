"""Erases a tenant in a process that is killed after a given number of calls.

python -m tests.erasing.killed DSN FOLDER TENANT NUMBER
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from batchmill.artifacts.local import LocalStorage
from batchmill.store.database import PooledDatabase
from tests.erasing.app import shop_on


def killed_after(number: int) -> None:
    """Counts the statements of the erasure and the deletions of files."""
    calls = 0

    def counted(method: Any) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            answer = await method(*args, **options)
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return call

    PooledDatabase._run = counted(PooledDatabase._run)  # type: ignore[method-assign]
    LocalStorage.delete = counted(LocalStorage.delete)  # type: ignore[method-assign]


async def main(dsn: str, folder: str, tenant: str, number: str) -> None:
    async with shop_on(dsn, Path(folder)) as mill:
        killed_after(int(number))
        await mill.tenants.erase(tenant)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
