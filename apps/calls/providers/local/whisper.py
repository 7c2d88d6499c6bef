"""Whisper, by faster-whisper: the words of a clip."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from faster_whisper import WhisperModel
from faster_whisper.transcribe import Segment as Window
from faster_whisper.transcribe import Word as WordPart

from apps.calls.models import Word
from apps.calls.providers.local.channels import RATE, Samples, Signal
from apps.calls.providers.local.clips import Clip
from apps.calls.providers.local.package import model_directory, verify
from apps.calls.settings import LocalSettings

# A text that compresses better repeats itself.
REPETITIVE = 2.4
# Such a clip is transcribed again, without repetitions of so many tokens.
LONGEST_REPEAT = 5
# A phrase is repeated at most this often in a text that repeats itself.
MOST_REPEATS = 3
LONGEST_PHRASE = 12
# Below this, Whisper guesses.
UNSURE = -1.2
# The times of words are not more exact than this, in seconds.
TOLERANCE = 0.25


class Whisper:
    def __init__(self, directory: Path, threads: int):
        self._model = WhisperModel(
            str(directory), device="cpu", compute_type="int8", cpu_threads=threads
        )

    def words(self, clip: Clip, samples: Samples) -> list[Word]:
        """The words of a clip, with their times in the recording. The same clip always has the same
        words."""
        audio = clip.signal(samples)
        windows = self._windows(audio)
        if any(map(is_repetitive, windows)):
            windows = self._windows(audio, no_repeat_ngram_size=LONGEST_REPEAT)
        return [word for window in windows for word in plausible(window, clip)]

    def _windows(self, audio: Signal, **options: Any) -> list[Window]:
        windows, _ = self._model.transcribe(
            audio,
            language="en",
            # A mistake would repeat itself in the windows that follow.
            condition_on_previous_text=False,
            word_timestamps=True,
            # At higher temperatures Whisper chooses words at random.
            temperature=0.0,
            **options,
        )
        return list(windows)


def loaded(settings: LocalSettings) -> Whisper:
    return _loaded(model_directory(settings), settings.threads, settings.model is None)


@cache
def _loaded(directory: Path, threads: int, is_packaged: bool) -> Whisper:
    """Loaded once in each process."""
    if is_packaged:
        verify(directory)
    return Whisper(directory, threads)


def plausible(window: Window, clip: Clip) -> Iterator[Word]:
    """The words that can have been said: not a guess, not repeated without end, and not outside the
    speech."""
    if window.avg_logprob < UNSURE:
        return
    words = [placed(part, clip) for part in whole_words(window.words or ())]
    if is_repetitive(window):
        words = without_repeats(words)
    yield from (word for word in words if is_spoken(word, clip))


def is_repetitive(window: Window) -> bool:
    return window.compression_ratio > REPETITIVE


def whole_words(parts: Iterable[WordPart]) -> list[WordPart]:
    """Joins the parts of words with hyphens. The first part of a word begins with a space."""
    words = list[WordPart]()
    for part in parts:
        if words and not part.word.startswith(" "):
            before = words.pop()
            part = replace(before, word=before.word + part.word, end=part.end)
        words.append(part)
    return words


def placed(word: WordPart, clip: Clip) -> Word:
    start, end = clip.placed(word.start, word.end)
    return Word(start=round(start, 3), end=round(end, 3), text=word.word.strip())


def is_spoken(word: Word, clip: Clip) -> bool:
    return bool(word.text) and any(
        span.start / RATE - TOLERANCE < word.end and word.start < span.end / RATE + TOLERANCE
        for span in clip.speech
    )


def without_repeats(words: list[Word]) -> list[Word]:
    """Shortens each phrase that is repeated again and again."""
    kept = list[Word]()
    for word in words:
        kept.append(word)
        for size in range(1, LONGEST_PHRASE + 1):
            if repeats(kept, size) > MOST_REPEATS:
                del kept[-size:]
                break
    return kept


def repeats(words: list[Word], size: int) -> int:
    """How often the last `size` words come one after the other at the end."""
    texts = [word.text.lower().strip(".,!?") for word in words[-size * (MOST_REPEATS + 1) :]]
    phrase, count = texts[-size:], 0
    while len(phrase) == size and texts[-size:] == phrase:
        count += 1
        del texts[-size:]
    return count
