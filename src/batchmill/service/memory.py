"""Memory that is free goes back to the system."""

import ctypes
from contextlib import suppress

# Of <malloc.h>.
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8
LARGE = 262_144
ARENAS = 2


def give_back_large_blocks() -> None:
    """Answers and bodies are blocks of some hundred kilobytes. Once one of many megabytes is freed,
    glibc takes all smaller ones from its heap, where a small block above them keeps all of them.
    With a size that is set, they are mapped one by one and given back when they are freed. Each
    thread would get a heap of its own as well."""
    # Other systems have another allocator.
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, LARGE)
        libc.mallopt(M_ARENA_MAX, ARENAS)
