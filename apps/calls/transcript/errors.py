"""The error of a transcript that cannot be read."""

from batchmill import Permanent


class InvalidTranscript(Permanent):
    """Lines are counted from 1. The message is shown to end users unchanged."""

    def __init__(self, line: int, problem: str):
        self.line = line
        super().__init__(f"Line {line} of the transcript: {problem}", code="INVALID_TRANSCRIPT")
