"""Documents of invented persons, for the demo and the tests: JSON Resumes of one, two and five
pages, with a name from right to left, and with Greek, Cyrillic, Chinese, Japanese and Korean."""

import json
from pathlib import Path
from typing import Any

SAMPLES = ("one-page", "two-pages", "five-pages", "right-to-left", "many-scripts")

DIRECTORY = Path(__file__).parent


def sample(name: str) -> dict[str, Any]:
    """A document as a user would upload it."""
    return json.loads((DIRECTORY / f"{name}.json").read_text(encoding="utf-8"))


def samples() -> dict[str, dict[str, Any]]:
    return {name: sample(name) for name in SAMPLES}
