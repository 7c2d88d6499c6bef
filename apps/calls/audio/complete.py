"""Finds files whose end is missing by their structure, where ffprobe does not see it.

ffprobe reports the length that is there for WAV and OGG, and nothing for MP4 without its index,
which most recorders write last. For the other formats, lengths are compared after decoding.
"""

from pathlib import Path
from typing import BinaryIO

from apps.calls.audio.errors import Truncated

# More would only keep this process busy: four hours in fragments of a second have 29,000.
_MOST_PARTS = 100_000
# Some writers count bytes of the header as sound.
_WAV_SLACK = 4_096
_OGG_HEADER = 27
_LARGEST_OGG_PAGE = _OGG_HEADER + 255 + 255 * 255

_MP4_STARTS = {b"ftyp", b"mdat", b"moov", b"wide"}
_MP4_SOUND = {b"mdat", b"moov", b"moof"}
# Images (HEIC) have `meta` instead of an index of tracks.
_MP4_INDEX = {b"moov", b"moof", b"meta"}


def require_complete(source: Path) -> None:
    with source.open("rb") as file:
        if _is_cut(file, source.stat().st_size):
            raise Truncated


def _is_cut(file: BinaryIO, size: int) -> bool:
    start = file.read(12)
    if start[:4] == b"RIFF" and start[8:] == b"WAVE":
        return _is_cut_wav(file, size)
    if start[:4] == b"OggS":
        return _is_cut_ogg(file, size)
    return start[4:8] in _MP4_STARTS and _is_cut_mp4(file, size)


def _is_cut_wav(file: BinaryIO, size: int) -> bool:
    position = 12
    for _ in range(_MOST_PARTS):
        file.seek(position)
        head = file.read(8)
        length = int.from_bytes(head[4:], "little")
        if len(head) < 8:
            return True
        if head[:4] == b"data":
            return not _is_unknown(length) and position + 8 + length > size + _WAV_SLACK
        position += 8 + length + length % 2
    return False


def _is_unknown(length: int) -> bool:
    """Programs that write to a pipe declare 0, or about 2 or 4 GiB."""
    return -length % (1 << 31) <= 1 << 16


def _is_cut_ogg(file: BinaryIO, size: int) -> bool:
    """Whether the last page is incomplete. A missing mark for the last page is no evidence: some
    recorders never write it."""
    file.seek(max(0, size - _LARGEST_OGG_PAGE))
    tail = file.read()
    page = tail[tail.rfind(b"OggS") :]
    if not page.startswith(b"OggS"):
        return False
    if len(page) < _OGG_HEADER:
        return True
    segments = page[_OGG_HEADER - 1]
    body = sum(page[_OGG_HEADER : _OGG_HEADER + segments])
    return len(page) < _OGG_HEADER + segments + body


def _is_cut_mp4(file: BinaryIO, size: int) -> bool:
    """Whether a box with sound ends after the end of the file, or the index is missing."""
    position, kinds = 0, set[bytes]()
    for _ in range(_MOST_PARTS):
        file.seek(position)
        head = file.read(16)
        length = _mp4_length(head, rest=size - position)
        if length < 8:
            break
        kinds.add(kind := head[4:8])
        position += length
        if position > size:
            # Other boxes, and bytes after the last box that are no box, do not matter.
            return kind in _MP4_SOUND
    return b"mdat" in kinds and not kinds & _MP4_INDEX


def _mp4_length(head: bytes, rest: int) -> int:
    """The length of the box that starts with `head`, and 0 if there is none."""
    if len(head) < 8:
        return 0
    length = int.from_bytes(head[:4])
    if length == 0:
        return rest
    return int.from_bytes(head[8:]) if length == 1 else length
