"""The worker's log: plain lines on stderr, in colour only on a terminal."""

import logging
import sys
from enum import StrEnum

COLOURS = {"DEBUG": "\x1b[2m", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31m"}
PLAIN = "\x1b[0m"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Lines(logging.Formatter):
    def __init__(self, *, coloured: bool):
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        colour = COLOURS.get(record.levelname) if self._coloured else None
        return f"{colour}{line}{PLAIN}" if colour else line


def log_to_stderr(level: LogLevel) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(Lines(coloured=sys.stderr.isatty()))
    logging.basicConfig(level=level.upper(), handlers=[handler])
