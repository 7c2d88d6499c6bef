"""Fetches URLs while the only name server never answers. Prints the results.

test_resolver.py runs this program in a network namespace. The program does not wait for its
lookups, which would take two minutes.
"""

import asyncio
import socket
import subprocess
import tempfile
from pathlib import Path

from batchmill import AddressRefused, Fetcher, FetchLimits, ResponseTooSlow
from batchmill.threads import in_thread

STUCK = 60


def start_silent_name_server() -> socket.socket:
    """Starts a name server that receives every query and answers none."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write("nameserver 127.0.0.1\noptions timeout:30 attempts:4\n")
    subprocess.run(["mount", "--bind", file.name, "/etc/resolv.conf"], check=True)
    Path(file.name).unlink()
    return server


async def is_too_slow(fetcher: Fetcher, url: str) -> bool:
    try:
        await fetcher.read(url, caller="eve")
    except ResponseTooSlow:
        return True
    return False


async def main() -> None:
    fetcher = Fetcher(limits=FetchLimits(lookup=2))
    asked = [
        asyncio.create_task(is_too_slow(fetcher, f"http://name-{n}.test/")) for n in range(STUCK)
    ]
    await asyncio.sleep(0)
    files = await in_thread(lambda: "done")
    try:
        await fetcher.read("http://localhost/", caller="ada")
    except AddressRefused:
        other = "resolved"
    else:
        other = "reached"
    assert not any(task.done() for task in asked)
    print(f"stuck={sum(await asyncio.gather(*asked))} files={files} other={other}")


with start_silent_name_server():
    asyncio.run(main())
