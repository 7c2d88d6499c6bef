"""Reads plain text: a line for each utterance, with or without the name of the speaker."""

from collections.abc import Iterator, Sequence

from apps.calls.transcript.speakers import Piece, split_name
from apps.calls.transcript.words import TimedWord, readable, spread


def read_plain(lines: Sequence[str], duration: float) -> Iterator[Piece]:
    """The text has no times. They are estimated: each line takes a part of the recording in
    proportion to its characters. A line without a name belongs to the speaker before it."""
    named = [(number, *split_name(line.strip())) for number, line in enumerate(lines, 1)]
    texts = [readable(text) for _, _, text in named]
    heard = iter(spread([text for text in texts if text], [TimedWord(0.0, duration, "")]))
    for (number, name, _), text in zip(named, texts, strict=True):
        if text:
            word = next(heard)
            yield Piece(number, name, text, word.start, word.end)
        elif name is not None:
            yield Piece(number, name, "", 0.0, 0.0)
