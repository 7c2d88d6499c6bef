"""The whole analysis of a transcript, by rules and without I/O."""

from apps.calls.analysis.actions import action_items_of
from apps.calls.analysis.english import is_english
from apps.calls.analysis.models import (
    NOT_ENGLISH,
    ActionItems,
    Analysis,
    KeyPhrases,
    Sentiment,
)
from apps.calls.analysis.phrases import key_phrases_of
from apps.calls.analysis.questions import questions_of
from apps.calls.analysis.sentences import sentences_of
from apps.calls.analysis.sentiment import sentiment_of
from apps.calls.analysis.speeches import length_of
from apps.calls.analysis.summary import summary_of
from apps.calls.analysis.talk import talk_times
from apps.calls.models import Transcript


def analyse(transcript: Transcript) -> Analysis:
    """The same transcript always gives the same JSON, byte for byte. Without English word lists,
    sentiment, key phrases and action items are left out."""
    sentences, length = sentences_of(transcript), length_of(transcript)
    talk = talk_times(transcript, sentences)
    speakers = [each.speaker for each in talk.speakers]
    english = is_english(transcript.language)
    return Analysis(
        language=transcript.language,
        duration=round(length, 3),
        sentences=len(sentences),
        talk=talk,
        sentiment=sentiment_of(sentences, speakers, length)
        if english
        else Sentiment(method=NOT_ENGLISH, speakers=[], points=[]),
        key_phrases=key_phrases_of(sentences)
        if english
        else KeyPhrases(method=NOT_ENGLISH, items=[]),
        questions=questions_of(sentences, is_english=english),
        action_items=action_items_of(sentences, speakers)
        if english
        else ActionItems(method=NOT_ENGLISH, items=[]),
        summary=summary_of(sentences, length, is_english=english),
    )
