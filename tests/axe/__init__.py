"""Checks the accessibility of a page in a browser with axe-core."""

from pathlib import Path
from typing import Any

from playwright.async_api import Page

AXE = (Path(__file__).parent / "axe.min.js").read_text()
RUN = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"


async def violations(page: Page) -> list[str]:
    """All violations of the rules, as the rule and the elements."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE)
    found: list[dict[str, Any]] = await page.evaluate(RUN)
    return [
        f"{rule['impact']} {rule['id']}: {node['target']} {node.get('failureSummary', '')}"
        for rule in found
        for node in rule["nodes"]
    ]


async def violations_in_both_schemes(page: Page) -> list[str]:
    """Without motion, so that no colour is measured half-way."""
    found = []
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found += [f"{scheme}: {each}" for each in await violations(page)]
    return found
