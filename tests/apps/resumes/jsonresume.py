"""The published documents of JSON Resume, which are not part of this repository."""

import json
from pathlib import Path
from typing import Any

import pytest


def fixtures() -> Path:
    """The folder of the published documents. Skips the test without it."""
    folders = (parent / "shared/fixtures/resumes" for parent in Path(__file__).resolve().parents)
    folder = next((folder for folder in folders if folder.is_dir()), None)
    if folder is None:
        pytest.skip("The published documents of JSON Resume are not here.")
    return folder


def fixture(name: str) -> dict[str, Any]:
    return json.loads((fixtures() / name).read_text(encoding="utf-8"))


def documents() -> dict[str, dict[str, Any]]:
    files = fixtures().glob("*.json")
    return {file.stem: fixture(file.name) for file in files if "schema" not in file.stem}
