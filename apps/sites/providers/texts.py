"""The size of answers. Checkpoints and results of a job are limited, and a run has many answers."""

import unicodedata
from bisect import bisect_right
from itertools import accumulate

# Bytes of a text as JSON. A run has up to 8 providers and 7 prompts, so all texts together are
# smaller than 1 MiB. Checkpoints of a job may have 4 MiB.
MOST_BYTES = 16_384

_ESCAPED = frozenset('"\\\n\t')


def bounded(text: str) -> tuple[str, bool]:
    """The text without characters that cannot be stored, and whether it had to be cut."""
    clean = "".join(letter if _is_storable(letter) else "\ufffd" for letter in text)
    clean = clean.replace("\r\n", "\n").replace("\r", "\n")
    fits = bisect_right(list(accumulate(map(_size, clean))), MOST_BYTES)
    return clean[:fits].rstrip(), fits < len(clean)


def _is_storable(letter: str) -> bool:
    return letter in "\n\t\r" or unicodedata.category(letter) not in ("Cc", "Cs")


def _size(letter: str) -> int:
    return len(letter.encode()) + (letter in _ESCAPED)
