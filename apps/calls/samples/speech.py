"""Text → samples, spoken by espeak-ng."""

from array import array

from apps.calls.audio import tools

# The sample rate of espeak-ng, for all of its voices.
RATE = 22_050

_SECONDS = 30
_WAV_HEADER = 44
_WORDS_PER_MINUTE = "150"
_QUIET = 200


def spoken(text: str, voice: str) -> "array[int]":
    """16-bit samples, mono. The same text gives the same samples."""
    arguments = ["-v", voice, "-s", _WORDS_PER_MINUTE, "--stdout", "--", text]
    wav, _ = tools.output("espeak-ng", arguments, seconds=_SECONDS)
    return _without_end(array("h", wav[_WAV_HEADER:]))


def _without_end(samples: "array[int]") -> "array[int]":
    """Removes the pause after the last word, so that the times in the script are exact."""
    end = len(samples)
    while end and abs(samples[end - 1]) < _QUIET:
        end -= 1
    return samples[:end]
