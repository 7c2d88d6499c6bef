import shutil

import pytest

from apps.resumes.rendering import check_fonts


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    """These tests look at letters, so they need the fonts."""
    if missing := check_fonts():
        pytest.skip(f"Not installed: {', '.join(missing)}.")
    if shutil.which("pdftotext") is None:
        pytest.skip("Debian's poppler-utils are not installed.")
