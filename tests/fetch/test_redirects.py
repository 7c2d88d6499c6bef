import ssl

import pytest

from batchmill import (
    Addresses,
    AddressRefused,
    BadStatus,
    BadUrl,
    Fetcher,
    FetchLimits,
    TooManyRedirects,
)
from tests.fetch.site import FakeResolver, Site, answer, header, redirect


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed(site: Site, status: int):
    site.pages |= {"/a": redirect("/b", status), "/b": answer(b"here")}
    async with site.fetcher().get(site.url("/a")) as response:
        assert await response.read() == b"here"
        assert response.url == site.url("/b")


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://localhost/",
        "//[::1]/",
        "http://127.0.0.1:1/",
        "http://2130706433/",
    ],
)
async def test_a_redirect_to_a_forbidden_address_is_refused(site: Site, location: str):
    site.pages["/"] = redirect(location)
    with pytest.raises(AddressRefused):
        await site.fetcher().read(site.url())


async def test_a_redirect_to_the_same_name_is_resolved_and_checked_again(site: Site):
    site.pages |= {"/": redirect("/again"), "/again": answer(b"never")}
    names = FakeResolver(rebind=[["127.0.0.1"], ["10.0.0.1"]])
    with pytest.raises(AddressRefused):
        await site.fetcher(resolve=names).read(site.url(host="rebind.test"))
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "ftp://example.com/", "http://u:p@example.com/", "http://["]
)
async def test_a_redirect_to_an_invalid_url_is_refused(site: Site, location: str):
    site.pages["/"] = redirect(location)
    with pytest.raises(BadUrl):
        await site.fetcher().read(site.url())


async def test_a_redirect_loop_ends(site: Site):
    site.pages |= {"/": redirect("/b"), "/b": redirect("/")}
    with pytest.raises(TooManyRedirects):
        await site.fetcher().read(site.url())
    assert len(site.requests) == 6


@pytest.mark.parametrize(("allowed", "works"), [(2, True), (1, False), (0, False)])
async def test_the_number_of_redirects_is_limited(site: Site, allowed: int, works: bool):
    site.pages |= {"/": redirect("/b"), "/b": redirect("/c"), "/c": answer(b"here")}
    fetcher = site.fetcher(limits=FetchLimits(redirects=allowed))
    if works:
        assert await fetcher.read(site.url()) == b"here"
    else:
        with pytest.raises(TooManyRedirects):
            await fetcher.read(site.url())


async def test_a_redirect_without_a_location_is_a_bad_status(site: Site):
    site.pages["/"] = answer(status=302)
    with pytest.raises(BadStatus) as caught:
        await site.fetcher().read(site.url())
    assert caught.value.status == 302


async def test_secret_headers_are_not_sent_after_a_redirect(site: Site, other: Site):
    site.pages |= {"/": redirect("/same"), "/same": redirect(other.url("/"))}
    other.pages["/"] = answer(b"here")
    addresses = Addresses(allow=[f"127.0.0.1:{site.port}", f"127.0.0.1:{other.port}"])
    secrets = {"Authorization": "s", "Cookie": "s", "X-Api-Key": "s", "Accept": "text/html"}
    await Fetcher(addresses=addresses).read(site.url(), headers=secrets)
    assert header(site.requests[0], "authorization") == "s"
    for later in (site.requests[1], other.requests[0]):
        assert header(later, "accept") == "text/html"
        assert {header(later, name) for name in ("authorization", "cookie", "x-api-key")} == {None}


async def test_a_redirect_from_https_to_http_is_refused(
    secure: Site, site: Site, trust: ssl.SSLContext
):
    secure.pages["/"] = redirect(site.url())
    addresses = Addresses(allow=[f"127.0.0.1:{secure.port}", f"127.0.0.1:{site.port}"])
    names = FakeResolver(secure=[["127.0.0.1"]])
    with pytest.raises(BadUrl, match="from https to http"):
        await Fetcher(addresses=addresses, tls=trust, resolve=names).read(
            secure.url(host="secure.test")
        )
    assert not site.requests


async def test_the_body_of_a_redirect_is_not_read(site: Site):
    site.pages |= {
        "/": answer(b"x", status=302, location="/b", content_length="99999999999"),
        "/b": answer(b"here"),
    }
    assert await site.fetcher().read(site.url()) == b"here"
