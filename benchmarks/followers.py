"""Many stream clients in one process: `python -m benchmarks.followers --port … --batch …`.

Prints a line when all clients are connected, and a summary when the batch has finished.
"""

import argparse
import asyncio
import json
import re
import time
from array import array
from datetime import datetime

from benchmarks.measure import percentile
from tests.streams.processes import allow_open_files

NUMBER = re.compile(rb"id: (\d+)\nevent: ")
EVENT = re.compile(rb'id: (\d+)\nevent: .*\ndata: .*"at":"([^"]+)"')
AT_ONCE = 100


class Observations:
    """The events that all clients have received, and the age of each event on arrival."""

    def __init__(self) -> None:
        self.ages = array("d")
        self.last_received = 0.0
        self._event_times: dict[bytes, float] = {}

    def record(self, frames: bytes) -> None:
        """All clients receive the same events, so the time of each event is parsed only once."""
        self.last_received = time.time()
        numbers = NUMBER.findall(frames)
        if not self._event_times.keys() >= set(numbers):
            for number, at in EVENT.findall(frames):
                self._event_times[number] = datetime.fromisoformat(at.decode()).timestamp()
        self.ages.extend([self.last_received - self._event_times[number] for number in numbers])

    def summary(self) -> dict[str, float]:
        ages = list(self.ages)
        return {
            "events": len(ages),
            "seconds": self.last_received - min(self._event_times.values()),
            "p50": percentile(ages, 50),
            "p99": percentile(ages, 99),
        }


class Client(asyncio.Protocol):
    def __init__(self, observations: Observations, path: str):
        self.connected = asyncio.Event()
        self.ended = asyncio.Event()
        self._observations = observations
        self._path = path
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        request = f"GET {self._path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        transport.write(request.encode())

    def data_received(self, data: bytes) -> None:
        self.connected.set()
        # An incomplete frame waits for the rest of its data.
        whole, _, self._pending = (self._pending + data).rpartition(b"\n\n")
        self._observations.record(whole)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


async def follow(port: int, batch: str, clients: int) -> None:
    allow_open_files(clients + 500)
    observations, room = Observations(), asyncio.Semaphore(AT_ONCE)
    loop = asyncio.get_running_loop()

    async def connected() -> Client:
        async with room:
            path = f"/v1/batches/{batch}/events"
            _, client = await loop.create_connection(
                lambda: Client(observations, path), "127.0.0.1", port
            )
            await client.connected.wait()
            return client

    every = await asyncio.gather(*(connected() for _ in range(clients)))
    print(json.dumps({"ready": len(every)}), flush=True)
    for client in every:
        await client.ended.wait()
    print(json.dumps(observations.summary()), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--batch", required=True)
    parser.add_argument("--clients", type=int, required=True)
    given = parser.parse_args()
    asyncio.run(follow(given.port, given.batch, given.clients))
