"""Tags and escaped characters in the text of subtitles."""

import html
import re
from collections.abc import Iterator

_SRT_TAG = re.compile(r"</?(?:i|b|u|s|font)(?:\s[^<>]*)?>|\{\\[^{}]*\}", re.IGNORECASE)
# It begins with the first of several dashes, so that a long line of dashes is read only once.
_ARROW = re.compile("(?<!-)--+>")
_VTT_TAG = re.compile(r"<[^<>]*>")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s([^<>]*)>")
# `>` too: a cue must not contain `-->`.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_BRACKETS = str.maketrans("", "", "<{")


def without_srt_tags(text: str) -> str:
    return _SRT_TAG.sub("", text)


def for_srt(text: str) -> str:
    """SRT has no way to escape. Players take `-->` as a line of times, so it becomes `->`."""
    text = without_srt_tags(text)
    if _SRT_TAG.search(text):
        # Removing a tag can leave another one: `<<i>b>`.
        text = text.translate(_BRACKETS)
    return _ARROW.sub("->", text)


def for_vtt(text: str) -> str:
    return text.translate(_ESCAPES)


def voices(payload: str) -> Iterator[tuple[str | None, str]]:
    """The names of the voices of a VTT cue, and their texts. Text outside of voices has no name."""
    before, *rest = _VOICE.split(payload)
    yield None, _from_vtt(before)
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        yield html.unescape(name), _from_vtt(text)


def _from_vtt(text: str) -> str:
    return html.unescape(_VTT_TAG.sub("", text))
