"""Returns free memory to the system."""

import ctypes
from contextlib import suppress

# From <malloc.h>.
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8
LARGE = 262_144
ARENAS = 2


def give_back_large_blocks() -> None:
    """Makes glibc map large blocks separately and return each one when it is freed.

    Answers and bodies are blocks of some hundred kilobytes. By default, after a block of many
    megabytes is freed, glibc allocates all smaller blocks from its heap. There, one small block
    above them keeps all of them allocated. Each thread would also get its own heap.
    """
    # Other systems have a different allocator.
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, LARGE)
        libc.mallopt(M_ARENA_MAX, ARENAS)
