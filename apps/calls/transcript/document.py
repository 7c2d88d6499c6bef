"""Reads a transcript in our own JSON."""

import json
import re
from collections.abc import Iterator

from pydantic import ValidationError

from apps.calls.models import Segment, Speech, Transcript
from apps.calls.transcript.errors import InvalidTranscript
from apps.calls.transcript.speakers import MOST_SPEAKERS
from apps.calls.transcript.times import problem_with

_SEGMENTS = re.compile(r'"segments"\s*:\s*\[\s*')
_COMMA = re.compile(r"\s*,\s*")


def read_json(text: str, duration: float) -> Transcript:
    try:
        transcript = Transcript.model_validate(json.loads(text))
    except json.JSONDecodeError as error:
        raise InvalidTranscript(error.lineno, f"not valid JSON: {error.msg}.") from error
    except ValidationError as error:
        raise _invalid(text, error) from error
    except (RecursionError, ValueError) as error:
        raise InvalidTranscript(1, "not a transcript: this JSON cannot be read.") from error
    for at, problem in _problems(transcript, duration):
        raise InvalidTranscript(line_of_segment(text, at), problem)
    return transcript


def _invalid(text: str, error: ValidationError) -> InvalidTranscript:
    first = error.errors(include_url=False)[0]
    path, message = list(first["loc"]), first["msg"]
    match path:
        case ["segments", int(number), *_]:
            line = line_of_segment(text, number)
        case _:
            line = 1
    return InvalidTranscript(line, f"{'.'.join(map(str, path)) or 'the JSON'}: {message}.")


def _problems(transcript: Transcript, duration: float) -> Iterator[tuple[int, str]]:
    """What is wrong, with the number of the segment."""
    for at, segment in enumerate(transcript.segments):
        for item in (segment, *segment.words):
            if problem := problem_with(item.start, item.end, duration):
                yield at, f"segments.{at}: {problem}"
        if problem := _problem_with_speaker(segment):
            yield at, f"segments.{at}: {problem}"
    for at, speech in enumerate(transcript.speech):
        problem = problem_with(speech.start, speech.end, duration) or _problem_with_speaker(speech)
        if problem:
            yield 0, f"speech.{at}: {problem}"


def _problem_with_speaker(item: Segment | Speech) -> str | None:
    if 1 <= item.speaker <= MOST_SPEAKERS:
        return None
    return f"the speaker must be a number from 1 to {MOST_SPEAKERS}, not {item.speaker}."


def line_of_segment(text: str, number: int) -> int:
    """The line where the segment begins, which the parser does not report. The segments before it
    are valid JSON."""
    found = _SEGMENTS.search(text)
    at = found.end() if found else 0
    for _ in range(number):
        _, end = json.JSONDecoder().raw_decode(text, at)
        comma = _COMMA.match(text, end)
        at = comma.end() if comma else end
    return text.count("\n", 0, at) + 1
