"""The PDFs that a meet's page links to, from a real server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from apps.heatsync.answers import Refusal
from apps.heatsync.discover import sheets_at
from batchmill import Addresses, AddressRefused, Fetcher
from tests.apps.heatsync.web import Web, serving

PAGE = b"""<!doctype html><html><head><title>Spring
 Meet</title></head><body>
<a href="/files/Results.pdf">Results</a>
<a href="files/heats-1.PDF"><b>Heat sheet</b>
   Session 1</a>
<a href="https://other.example/psych.pdf?v=2#page=3">Psych</a>
<a href="files/heats-1.PDF">again</a>
<a href="javascript:alert(1).pdf">no</a> <a href="http://[.pdf">no</a> <a href="//[x]/a.pdf">no</a> <a href="about.html">About</a> <a>nothing</a>
<a href="files/empty%20name.pdf"> </a>
</body></html>"""


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with serving({"/meet/": PAGE, "/sheet.pdf": b"%PDF-1.7\n", "/data": b"{}"}) as web:
        yield web


def fetcher_for(web: Web) -> Fetcher:
    return Fetcher(addresses=Addresses(allow=[web.address]))


async def found_at(web: Web, path: str) -> list[tuple[str, Any]]:
    _, links = await sheets_at(f"{web.url}{path}", fetcher_for(web), "ada")
    return [(link.url.removeprefix(web.url), link.name) for link in links]


async def test_pdfs_are_listed_once_and_likely_sheets_first(web: Web) -> None:
    assert await found_at(web, "/meet/") == [
        ("/meet/files/heats-1.PDF", "Heat sheet Session 1"),
        ("https://other.example/psych.pdf?v=2", "Psych"),
        ("/files/Results.pdf", "Results"),
        ("/meet/files/empty%20name.pdf", "empty name.pdf"),
    ]


async def test_the_title_of_the_page_is_returned(web: Web) -> None:
    title, _ = await sheets_at(f"{web.url}/meet/", fetcher_for(web), "ada")
    assert title == "Spring Meet"


async def test_the_url_of_a_pdf_returns_that_pdf(web: Web) -> None:
    assert await found_at(web, "/sheet.pdf") == [("/sheet.pdf", "sheet.pdf")]


async def test_a_private_address_is_refused(web: Web) -> None:
    with pytest.raises(AddressRefused):
        await sheets_at(f"{web.url}/meet/", Fetcher(), "ada")


async def test_a_response_that_is_not_html_is_refused(web: Web) -> None:
    with pytest.raises(Refusal, match="not a web page"):
        await sheets_at(f"{web.url}/data", fetcher_for(web), "ada")


async def test_pdfs_are_found_after_many_other_links(web: Web) -> None:
    menu = b"<html><body>" + b'<a href="x.html">x</a>' * 1_000 + b'<a href="heats.pdf">Heats</a>'
    web.answers = {"/meet/": menu}
    assert await found_at(web, "/meet/") == [("/meet/heats.pdf", "Heats")]


async def test_pdfs_before_invalid_markup_are_kept(web: Web) -> None:
    web.answers = {"/meet/": b'<html><body><a href="heats.pdf">Heats</a> <![ x'}
    assert await found_at(web, "/meet/") == [("/meet/heats.pdf", "Heats")]
