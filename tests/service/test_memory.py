"""A server returns the memory of large requests to the operating system."""

import platform
import subprocess
import sys

import pytest

MEASURED = """
import re
from pathlib import Path
from batchmill.service.memory import give_back_large_blocks

def resident():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmRSS:\\s+(\\d+)", status)[1])

{first}
before = resident()
small = []
for _ in range(20):
    large = [bytes(1_000_000 + 20_000 * number) for number in range(40)]
    small += [bytes(3_000) for _ in range(10)]
    del large
    small += [bytes(3_000) for _ in range(10)]
large = []
for _ in range(60):
    large.append(bytes(1_000_000))
    small.append(bytes(4_000))
del large
print(resident() - before)
"""


def kilobytes_kept(first: str) -> int:
    """Returns the kilobytes that a process keeps after it freed large blocks between small ones."""
    program = [sys.executable, "-c", MEASURED.format(first=first)]
    return int(subprocess.run(program, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="Tests the allocator of glibc.")
def test_large_blocks_are_returned_to_the_system() -> None:
    assert kilobytes_kept("give_back_large_blocks()") < 10_000
    # Without the call, the process keeps the memory.
    assert kilobytes_kept("") > 30_000
