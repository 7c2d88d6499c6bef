"""Signed links give access to one resource without a key, for a limited time."""

from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import psycopg
import pytest

from batchmill.config import ServiceSettings
from batchmill.service import create_app
from tests.library.tools import later
from tests.service.conftest import running
from tests.service.shop import shop_on
from tests.service.tools import SharedService, Tenant, make_key, problem


async def link_of(tenant: Tenant, path: str, **query: str) -> str:
    answer = await tenant.client.post(f"{path}/link", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["url"]


async def test_a_link_gives_access_to_one_file_without_a_key(
    service: SharedService, ada: Tenant
) -> None:
    file = await ada.file(b"ann")
    link = await link_of(ada, f"/v1/artifacts/{file['id']}")
    async with service.client() as stranger:
        assert (await stranger.get(link)).content == b"ann"
        assert (await stranger.get(link, headers={"Range": "bytes=1-"})).content == b"nn"
        assert (await stranger.head(link)).status_code == 200
        assert problem(await stranger.delete(link)) == (405, "method_not_allowed")
        metadata = link.replace("/content", "")
        assert problem(await stranger.get(metadata)) == (401, "not_authenticated")
    assert (await ada.client.get(f"/v1/artifacts/{file['id']}")).json()["downloads"] == 2
    await ada.client.delete(f"/v1/artifacts/{file['id']}")
    assert problem(await ada.client.get(link)) == (404, "not_found")


async def test_a_batch_can_be_followed_with_a_link(service: SharedService, ada: Tenant) -> None:
    batch = await ada.batch()
    link = await link_of(ada, batch["links"]["events"])
    async with service.client() as stranger:
        text = (await stranger.get(link)).text
        assert "event: batch_completed" in text
        last = text.rpartition("id: ")[2].partition("\n")[0]
        assert (await stranger.get(link, headers={"Last-Event-ID": last})).status_code == 204


async def test_a_stream_ends_when_its_link_expires(service: SharedService, ada: Tenant) -> None:
    batch = await ada.batch(delay=3_600)
    link = await link_of(ada, batch["links"]["events"], seconds="3")
    async with service.client() as stranger:
        # The body ends properly; httpx raises if it is cut off.
        assert (await stranger.get(link)).text == "retry: 2000\n\n"
        assert problem(await stranger.get(link)) == (410, "link_expired")


async def test_a_link_that_was_tampered_with_is_refused(
    service: SharedService, ada: Tenant, bob: Tenant
) -> None:
    mine, other = await ada.file(b"ann"), await ada.file(b"eve")
    his = await bob.file(b"bob")
    link = await link_of(ada, f"/v1/artifacts/{mine['id']}")
    query = dict(parse_qsl(urlsplit(link).query))
    changed = [
        link.replace(mine["id"], other["id"]),
        link.replace(mine["id"], his["id"]),
        *(f"{urlsplit(link).path}?{urlencode(query | change)}" for change in changes(query, bob)),
    ]
    async with service.client() as stranger:
        assert (await stranger.get(link)).status_code == 200
        for each in changed:
            assert problem(await stranger.get(each)) == (403, "invalid_link"), each


def changes(query: dict[str, str], other: Tenant) -> list[dict[str, str]]:
    signature = query["signature"]
    flipped = [
        signature[:at] + ("A" if signature[at] != "A" else "B") + signature[at + 1 :]
        for at in range(len(signature))
    ]
    later = str(int(query["expires"]) + 1)
    return [
        *({"signature": each} for each in [*flipped, "", "x", signature + "A", "é"]),
        {"tenant": other.name},
        {"tenant": ""},
        {"expires": later},
        {"expires": "x"},
        {"expires": "9" * 5_000},
        {"key": "2"},
        {"key": "x"},
    ]


@pytest.mark.parametrize("missing", ["tenant", "expires", "key"])
async def test_a_link_with_a_missing_parameter_is_refused(missing: str, ada: Tenant) -> None:
    link = await link_of(ada, f"/v1/artifacts/{(await ada.file())['id']}")
    query = dict(parse_qsl(urlsplit(link).query))
    del query[missing]
    answer = await ada.client.get(f"{urlsplit(link).path}?{urlencode(query)}")
    assert problem(answer) == (403, "invalid_link")


@pytest.mark.parametrize("seconds", ["0", "-1", "604801", "nan", "inf", "x", "1e400"])
async def test_an_invalid_lifetime_of_a_link_is_refused(seconds: str, ada: Tenant) -> None:
    at = f"/v1/artifacts/{(await ada.file())['id']}/link"
    answer = await ada.client.post(at, params={"seconds": seconds})
    assert problem(answer) == (422, "invalid_request")


async def test_an_expired_link_is_refused(
    dsn: str, tmp_path: Path, sql: psycopg.Connection
) -> None:
    """The clock of the second server is two hours ahead."""
    settings = ServiceSettings(public_url="https://files.example.com")
    headers = {"Authorization": f"Bearer {make_key(sql, 'ada')}"}
    async with running(create_app(shop_on(dsn, tmp_path), settings=settings)) as client:
        file = await client.put("/v1/artifacts?name=a", content=b"ann", headers=headers)
        at = f"/v1/artifacts/{file.json()['id']}/link"
        short, long = [
            (await client.post(at, params={"seconds": seconds}, headers=headers)).json()
            for seconds in (3_600, 10_800)
        ]
        assert short["seconds"] == 3_600
    links = [link["url"].removeprefix("https://files.example.com") for link in (short, long)]
    async with running(create_app(shop_on(later(dsn, "2h"), tmp_path))) as client:
        assert problem(await client.get(links[0])) == (410, "link_expired")
        answer: httpx.Response = await client.get(links[1])
        assert answer.content == b"ann"
