"""The README documents all error codes of sheets."""

from pathlib import Path

import pytest

from apps.heatsync import codes, reader
from batchmill import errors

README = (Path(codes.__file__).parent / "README.md").read_text()
RULE_CODES = {rule.code for rule in (*codes.DOWNLOAD_RULES, *codes.READ_RULES)}
READER_CODES = {kind.code for kind in reader.HeatSyncError.__subclasses__()} | {
    reader.AmbiguousSwimmer.code
}
# A bad status has its own rules.
FETCH_CODES = {
    codes.code_of(kind.code)
    for kind in errors.FetchError.__subclasses__()
    if kind is not errors.BadStatus
}


@pytest.mark.parametrize(
    "code",
    sorted(RULE_CODES | READER_CODES | FETCH_CODES | codes.RETRIABLE | set(codes.CODES.values())),
)
def test_every_code_is_in_the_readme(code: str) -> None:
    assert f"`{code}`" in README
