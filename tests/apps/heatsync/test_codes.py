"""The codes of sheets that were not read: all are in the README."""

from pathlib import Path

import pytest

from apps.heatsync import codes, reader
from batchmill import errors

README = (Path(codes.__file__).parent / "README.md").read_text()
RULED = {rule.code for rule in (*codes.NOT_GIVEN, *codes.UNREADABLE)}
READ = {kind.code for kind in reader.HeatSyncError.__subclasses__()} | {
    reader.AmbiguousSwimmer.code
}
# A bad status has rules of its own.
FETCHED = {
    codes.code_of(kind.code)
    for kind in errors.FetchError.__subclasses__()
    if kind is not errors.BadStatus
}


@pytest.mark.parametrize(
    "code", sorted(RULED | READ | FETCHED | codes.RETRIABLE | set(codes.CODES.values()))
)
def test_every_code_is_explained(code: str) -> None:
    assert f"`{code}`" in README
