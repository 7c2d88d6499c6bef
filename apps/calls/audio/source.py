"""How ffmpeg and ffprobe open an untrusted file."""

from pathlib import Path

# Playlists and scripts (hls, concat, dash, sdp, image2, lavfi) name other files and URLs, which
# ffmpeg would open. So only containers that hold their own sound are allowed. Headerless formats
# are left out too: ffmpeg would play any text as noise.
_FORMATS = (
    "aac", "aiff", "amr", "asf", "au", "avi", "caf", "flac", "flv", "matroska", "mov", "mp3",
    "mpeg", "mpegts", "ogg", "w64", "wav", "wv",
)  # fmt: skip


def opened(source: Path) -> list[str]:
    """The arguments that open `source`. With `file:` before it, no name is an option or a URL."""
    return [
        *("-protocol_whitelist", "file"),
        *("-format_whitelist", ",".join(_FORMATS)),
        *("-i", f"file:{source}"),
    ]
