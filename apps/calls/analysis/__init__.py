"""Transcripts → analyses."""

from apps.calls.analysis.analyse import analyse
from apps.calls.analysis.models import Analysis
from apps.calls.analysis.sentences import Sentence, sentences_of
from apps.calls.analysis.writer import Written, with_model, written_by_model

__all__ = [
    "Analysis",
    "Sentence",
    "Written",
    "analyse",
    "sentences_of",
    "with_model",
    "written_by_model",
]
