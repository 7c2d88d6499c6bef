"""A server that has answered large requests gets as small again as it was."""

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


def kept(first: str) -> int:
    """Kilobytes that a process has left of large blocks that were freed among small ones."""
    program = [sys.executable, "-c", MEASURED.format(first=first)]
    return int(subprocess.run(program, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="It is about glibc.")
def test_large_blocks_go_back_to_the_system() -> None:
    assert kept("give_back_large_blocks()") < 10_000
    # Else this would be a test of nothing.
    assert kept("") > 30_000
