from collections.abc import AsyncIterator

import pytest

from tests.apps.sites.crawl.website import Website


@pytest.fixture
async def web() -> AsyncIterator[Website]:
    async with Website() as website:
        yield website


@pytest.fixture
async def other() -> AsyncIterator[Website]:
    """A second website, at another port."""
    async with Website() as website:
        yield website
