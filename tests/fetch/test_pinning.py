"""A name is resolved once, every address is checked, and only a checked one is connected to."""

import asyncio
import ssl

import pytest

from batchmill import (
    Addresses,
    AddressRefused,
    BadUrl,
    Fetcher,
    FetchLimits,
    ResponseTooLarge,
    ResponseTooSlow,
    Unreachable,
)
from tests.fetch.site import FakeResolver, Site, answer, header

PUBLIC = "8.8.8.8"


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "0x7f000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "0.0.0.0",
        "169.254.169.254",
    ],
)
async def test_the_local_machine_cannot_be_reached_by_any_name(site: Site, host: str):
    with pytest.raises((AddressRefused, BadUrl)):
        await Fetcher().read(site.url(host=host))
    assert not site.requests


async def test_a_name_with_a_private_address_is_refused_without_naming_the_address(site: Site):
    fetcher = Fetcher(resolve=FakeResolver(inner=[["127.0.0.1"]]))
    with pytest.raises(AddressRefused) as caught:
        await fetcher.read(site.url(host="inner.test"))
    assert str(caught.value) == "inner.test points to an address or a port that is not allowed."
    assert not site.requests


@pytest.mark.parametrize("answers", [[PUBLIC, "10.0.0.1"], ["10.0.0.1", PUBLIC], ["fe80::1%eth0"]])
async def test_one_forbidden_address_is_enough_to_refuse_a_name(answers: list[str]):
    with pytest.raises(AddressRefused):
        await Fetcher(resolve=FakeResolver(mixed=[answers])).read("http://mixed.test/")


async def test_a_name_that_changes_its_address_is_resolved_once(site: Site):
    site.pages["/"] = answer(b"hello")
    names = FakeResolver(rebind=[["127.0.0.1"], ["10.0.0.1"]])
    assert await site.fetcher(resolve=names).read(site.url(host="rebind.test")) == b"hello"
    assert names.asked == ["rebind.test"]
    assert header(site.requests[0], "host") == f"rebind.test:{site.port}"


async def test_a_name_that_changes_to_a_forbidden_address_is_refused_next_time(site: Site):
    site.pages["/"] = answer(b"hello")
    fetcher = site.fetcher(resolve=FakeResolver(rebind=[["127.0.0.1"], ["10.0.0.1"]]))
    await fetcher.read(site.url(host="rebind.test"))
    with pytest.raises(AddressRefused):
        await fetcher.read(site.url(host="rebind.test"))


async def test_an_allowed_address_is_allowed_at_its_port_only(site: Site, other: Site):
    with pytest.raises(AddressRefused):
        await site.fetcher().read(other.url())
    assert not other.requests


async def test_the_next_address_is_tried_if_one_is_unreachable(site: Site):
    site.pages["/"] = answer(b"hello")
    addresses = Addresses(allow=[f"127.0.0.0/8:{site.port}"])
    names = FakeResolver(two=[["127.0.0.9", "127.0.0.1"]])
    assert await Fetcher(addresses=addresses, resolve=names).read(site.url(host="two.test"))
    assert len(site.requests) == 1


@pytest.mark.parametrize("result", [OSError("no such name"), []])
async def test_a_name_without_an_address_is_unreachable(result: OSError | list[str]):
    async def resolve(host: str, port: int) -> list[str]:
        if isinstance(result, OSError):
            raise result
        return result

    with pytest.raises(Unreachable, match="nowhere.test could not be resolved"):
        await Fetcher(resolve=resolve).read("http://nowhere.test/")


class TestTls:
    def names(self) -> FakeResolver:
        here = [["127.0.0.1"]]
        return FakeResolver(**{"secure": here, "wrong": here, "127.0.0.1": here})

    async def test_the_certificate_is_checked_for_the_name_not_the_address(
        self, secure: Site, trust: ssl.SSLContext
    ):
        secure.pages["/"] = answer(b"hello")
        fetcher = secure.fetcher(resolve=self.names(), tls=trust)
        assert await fetcher.read(secure.url(host="secure.test")) == b"hello"

    @pytest.mark.parametrize("host", ["wrong.test", "127.0.0.1"])
    async def test_a_certificate_of_another_name_is_refused(
        self, secure: Site, trust: ssl.SSLContext, host: str
    ):
        names = FakeResolver(
            secure=[["127.0.0.1"]], wrong=[["127.0.0.1"]], **{"127.0.0.1": [["127.0.0.1"]]}
        )
        with pytest.raises(Unreachable):
            await secure.fetcher(resolve=names, tls=trust).read(secure.url(host=host))
        assert not secure.requests

    async def test_an_untrusted_certificate_is_refused(self, secure: Site):
        with pytest.raises(Unreachable):
            await secure.fetcher(resolve=self.names()).read(secure.url(host="secure.test"))
        assert not secure.requests

    async def test_limits_apply_to_tls_responses(self, secure: Site, trust: ssl.SSLContext):
        secure.pages["/"] = answer(x="y" * 2000)
        limits = FetchLimits(headers=1000)
        fetcher = secure.fetcher(resolve=self.names(), tls=trust, limits=limits)
        with pytest.raises(ResponseTooLarge, match="headers"):
            await fetcher.read(secure.url(host="secure.test"))

    async def test_a_handshake_that_never_ends_is_too_slow(self, trust: ssl.SSLContext):
        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        fetcher = Fetcher(
            addresses=Addresses(allow=[f"127.0.0.1:{port}"]),
            limits=FetchLimits(connect=0.05),
            tls=trust,
        )
        async with server:
            with pytest.raises(ResponseTooSlow):
                await fetcher.read(f"https://127.0.0.1:{port}/")
