"""The longest time in which one speaker talks and nobody interrupts."""

from collections.abc import Sequence

from apps.calls.analysis.models import Monologue
from apps.calls.analysis.sentences import Sentence
from apps.calls.analysis.spans import Times, merged, without
from apps.calls.analysis.speeches import Speeches

# Seconds. A monologue continues after a shorter pause.
PAUSE = 1.0
# Seconds. Others may say "mm-hmm". Not shorter than PAUSE: a longer interruption then leaves a gap
# that is too long to be bridged.
BACKCHANNEL = 1.0


def longest_monologue(speeches: Speeches, sentences: Sequence[Sentence]) -> Monologue | None:
    found = [
        (start - end, start, speaker, end)
        for speaker in speeches
        for start, end in _monologues(speeches, speaker)
    ]
    if not found:
        return None
    _, start, speaker, end = min(found)
    return Monologue(
        speaker=speaker,
        start=round(start, 3),
        end=round(end, 3),
        seconds=round(end - start, 3),
        quote=next(
            (
                sentence.quote()
                for sentence in sentences
                if sentence.speaker == speaker and start <= sentence.middle <= end
            ),
            None,
        ),
    )


def _monologues(speeches: Speeches, speaker: int) -> Times:
    interruptions = merged(
        (start, end)
        for other, spans in speeches.items()
        if other != speaker
        for start, end in spans
        if end - start > BACKCHANNEL
    )
    return merged(without(speeches[speaker], interruptions), PAUSE)
