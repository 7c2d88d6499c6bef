"""A page follows a batch in a real browser: through lost connections, restarts and bad proxies."""

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route

from tests.apps.components.conftest import Components
from tests.apps.components.proxy import Proxy, Streams, proxy_before

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Records the number of each event, the last event of each state that is shown, and the states of
# the connection.
FOLLOW = """async (path) => {
    const { follow } = await import("/components/stream.js");
    const { call } = await import("/components/http.js");
    Object.assign(window, { seen: [], shown: [], states: [] });
    window.stream = follow(`${path}/stream`, {
        read: (signal) => call(path, { signal }),
        show: (state) => shown.push(state.last_event),
        last: (state) => state.last_event,
        isOver: (state) => state.is_over,
        on: new Proxy({}, { get: () => (event) => seen.push(event.number) }),
        state: (name) => states.push(name),
    });
}"""
# Records the batches that have ended.
FOLLOW_FEED = """async (url) => {
    const { follow } = await import("/components/stream.js");
    Object.assign(window, { ended: [], states: [] });
    window.stream = follow(url, {
        read: async () => ({}),
        show: () => {},
        last: () => "0-0",
        on: { batch_completed: (event) => ended.push(event.batch_id) },
        state: (name) => states.push(name),
    });
}"""
HIDE = """(isHidden) => {
    Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


@dataclass
class Follower:
    """A page that follows a batch through a proxy."""

    page: Page
    server: Components
    proxy: Proxy

    async def follow(self, seconds: float) -> str:
        path = await self.server.start_batch(seconds)
        await self.page.goto(self.proxy.url)
        await self.page.evaluate(FOLLOW, path)
        return path

    async def until(self, condition: str) -> None:
        """`wait_for_function` would need a page that allows `eval`."""
        while not await self.page.evaluate(condition):
            await asyncio.sleep(0.01)

    async def until_state(self, name: str) -> None:
        await self.until(f"states.at(-1) === '{name}'")

    async def until_later(self, name: str) -> None:
        """Waits for a state that is minutes away, with a faster clock."""
        while await self.page.evaluate("states.at(-1)") != name:
            await self.page.clock.run_for(1_000)

    async def get(self, name: str) -> Any:
        return await self.page.evaluate(name)

    async def assert_exact(self, path: str) -> None:
        """Each event after the first state was seen once, in order, up to the end."""
        await self.until_state("ended")
        (first,) = await self.get("shown")
        last = (await self.server.get(path))["last_event"]
        assert await self.get("seen") == list(range(first + 1, last + 1))


@pytest_asyncio.fixture(loop_scope="session")
async def follower(page: Page, components: Components) -> AsyncIterator[Follower]:
    async with proxy_before(components.port) as proxy:
        yield Follower(page, components, proxy)


@pytest_asyncio.fixture(loop_scope="session")
async def follower_of_own(page: Page, own_components: Components) -> AsyncIterator[Follower]:
    async with proxy_before(own_components.port) as proxy:
        yield Follower(page, own_components, proxy)


async def test_a_page_sees_each_event_once_although_its_connection_breaks(
    follower: Follower,
) -> None:
    path = await follower.follow(seconds=1.5)
    for _ in range(3):
        seen = len(await follower.get("seen"))
        await follower.until(f"states.at(-1) === 'live' && seen.length > {seen}")
        follower.proxy.cut()
        await follower.until_state("reconnecting")
    await follower.assert_exact(path)
    assert len(follower.proxy.last_event_ids) >= 4


@pytest.mark.timeout(180)
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=lambda end: end.name)
async def test_a_page_sees_each_event_once_although_the_server_restarts(
    follower_of_own: Follower, end: signal.Signals
) -> None:
    follower = follower_of_own
    path = await follower.follow(seconds=60)
    await follower.until("seen.length > 5")
    await follower.server.end(end)
    await follower.until_state("reconnecting")
    await follower.server.start()
    await follower.until_state("live")
    await follower.server.post(f"{path}/cancel")
    await follower.assert_exact(path)


@pytest.mark.parametrize("streams", [Streams.REFUSE, Streams.BUFFER, Streams.BUFFER_BODY])
async def test_a_page_polls_if_a_proxy_does_not_deliver_the_stream(
    follower: Follower, streams: Streams
) -> None:
    follower.proxy.streams = streams
    path = await follower.follow(seconds=60)
    await follower.until_state("polling")
    await follower.server.post(f"{path}/cancel")
    await follower.until_state("ended")
    assert await follower.get("seen") == []
    assert (await follower.get("shown"))[-1] == (await follower.server.get(path))["last_event"]


async def test_a_polling_page_returns_to_the_stream_when_it_works(follower: Follower) -> None:
    await follower.page.clock.install()
    follower.proxy.streams = Streams.REFUSE
    path = await follower.follow(seconds=60)
    await follower.until_later("polling")
    follower.proxy.streams = Streams.PASS
    await follower.until_later("live")
    await follower.server.post(f"{path}/cancel")
    await follower.until_later("ended")
    (*_, shown), seen = await follower.get("shown"), await follower.get("seen")
    assert seen == list(range(shown + 1, shown + 1 + len(seen)))
    assert seen[-1] == (await follower.server.get(path))["last_event"]


async def test_a_hidden_page_gives_its_connection_back_and_continues_later(
    follower: Follower,
) -> None:
    await follower.page.clock.install()
    path = await follower.follow(seconds=1)
    await follower.until("seen.length > 5")
    await follower.page.evaluate(HIDE, True)
    await follower.until_later("paused")
    while follower.proxy.open:
        await asyncio.sleep(0.01)
    await follower.page.evaluate(HIDE, False)
    await follower.until_state("live")
    await follower.assert_exact(path)


async def test_a_state_that_arrives_incomplete_is_read_again(follower: Follower) -> None:
    path = await follower.server.start_batch(0.5)
    await follower.page.goto(follower.proxy.url)
    await follower.page.evaluate("import('/components/stream.js')")
    follower.proxy.cuts = 1
    await follower.page.evaluate(FOLLOW, path)
    await follower.assert_exact(path)
    assert "failed" not in await follower.get("states")
    assert follower.proxy.cuts == 0


async def test_a_batch_that_does_not_exist_is_a_failure_at_once(follower: Follower) -> None:
    await follower.page.goto(follower.proxy.url)
    await follower.page.evaluate(FOLLOW, "/api/batches/00000000-0000-4000-8000-000000000000")
    await follower.until_state("failed")
    assert await follower.get("states") == ["connecting", "failed"]


async def test_a_page_continues_after_an_id_without_data_and_survives_its_own_mistakes(
    follower: Follower,
) -> None:
    """An application can leave events out of its stream. Then a client gets only their ids."""
    bodies = [
        'id: 5\nevent: one\ndata: {"number": 5, "name": "\u2028\\n"}\n\n:\n\nid: 7\n\n',
        'id: 8\r\nevent: one\r\ndata: {"number":\r\ndata: 8}\r\n\r\nid: 9\nevent: broken\ndata: {\n\n',
        'id: 10\nevent: batch_completed\ndata: {"number": 10}\n\n',
    ]
    asked: list[str | None] = []

    async def answer(route: Route) -> None:
        asked.append(route.request.headers.get("last-event-id"))
        await route.fulfill(
            body=bodies[len(asked) - 1], headers={"Content-Type": "text/event-stream"}
        )

    path = await follower.server.start_batch(seconds=60)
    await follower.page.route("**/stream", answer)
    await follower.page.goto(follower.proxy.url)
    await follower.page.evaluate(FOLLOW, path)
    await follower.until_state("ended")
    assert await follower.get("seen") == [5, 8, 10]
    assert asked[1:] == ["7", "9"]


async def test_a_page_that_follows_a_feed_continues_after_the_end_of_a_batch(
    follower: Follower,
) -> None:
    label = str(uuid4())
    url = f"/mill/v1/events?label=upload&value={label}"
    await follower.page.goto(follower.proxy.url)
    await follower.page.evaluate(FOLLOW_FEED, url)
    batches: list[str] = []
    for _ in range(2):
        batches.append(await follower.server.start_labelled_batch(upload=label))
        await follower.until(f"ended.includes('{batches[-1]}')")
    assert await follower.get("ended") == batches
    assert await follower.get("states") == ["connecting", "live"]


async def test_a_state_sync_makes_the_page_read_the_state_again(follower: Follower) -> None:
    async def sync(route: Route) -> None:
        await route.fulfill(
            body="id: 1\nevent: state_sync\ndata: {}\n\n",
            headers={"Content-Type": "text/event-stream"},
        )

    await follower.page.route("**/stream", sync, times=1)
    path = await follower.follow(seconds=1)
    await follower.until_state("ended")
    first, second, *more = await follower.get("shown")
    assert (first <= second, more) == (True, [])
    seen = await follower.get("seen")
    assert seen == list(range(second + 1, second + 1 + len(seen)))
    assert (await follower.server.get(path))["last_event"] == second + len(seen)
