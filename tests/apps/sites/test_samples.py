"""The sample website and the demo."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import httpx

from apps.sites.samples import ORIGIN, SampleSite, sample_files
from apps.sites.tables import SITES
from batchmill import Mill
from tests.apps.sites.website import PAGES

ROOT = Path(__file__).parents[3]


def test_pages_name_the_address_at_which_they_are_served() -> None:
    with SampleSite() as site, httpx.Client(base_url=site.url) as client:
        pages = [path for path in site.files if path == "/" or path.endswith(".html")]
        assert len(pages) == PAGES
        for path in (*pages, "/robots.txt", "/sitemap.xml"):
            answer = client.get(path)
            assert answer.headers["content-type"].endswith("charset=utf-8")
            assert ORIGIN not in answer.text and site.url in answer.text
        assert client.get("/prices.html").status_code == 404


def test_every_page_of_the_sitemap_exists() -> None:
    files = sample_files(ORIGIN)
    sitemap = files["/sitemap.xml"].decode()
    named = [line.split("<")[0] for line in sitemap.split(f"<loc>{ORIGIN}")[1:]]
    assert set(named) < files.keys() and len(named) == PAGES


async def test_the_demo_shows_facts_checks_and_questions(dsn: str, tmp_path: Path) -> None:
    async with Mill(dsn, migrate=True, schemas=[SITES]):
        pass
    settings = {"DATABASE_URL": dsn, "BATCHMILL_ARTIFACTS": str(tmp_path), "COLUMNS": "200"}
    settings |= {"SITES_PROVIDERS": "[]"}
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "apps.sites.demo"],
        cwd=ROOT,
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    for text in ("Astoria, OR", "json-ld of /", "CCBot", "What are good bakeries"):
        assert text in ended.stdout
    assert "skipped: not_configured" in ended.stdout
    assert "http://127.0.0.1:8330/runs/" in ended.stdout.splitlines()[-1]
