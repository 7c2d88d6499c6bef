"""What answers of models say about a business: mentions, scores and competitors."""

from apps.sites.answers.analysis import analysis_of
from apps.sites.answers.competitors import competitors_of
from apps.sites.answers.mentions import mentions_of, names_business
from apps.sites.answers.models import (
    NOT_ASKED,
    NOT_CONFIGURED,
    AnalysedAnswer,
    Answer,
    Competitor,
    Mention,
    ModelAnalysis,
    PromptFailure,
    ProviderAnswers,
    Score,
)
from apps.sites.answers.patterns import BusinessNames, names_of

__all__ = [
    "NOT_ASKED",
    "NOT_CONFIGURED",
    "AnalysedAnswer",
    "Answer",
    "BusinessNames",
    "Competitor",
    "Mention",
    "ModelAnalysis",
    "PromptFailure",
    "ProviderAnswers",
    "Score",
    "analysis_of",
    "competitors_of",
    "mentions_of",
    "names_business",
    "names_of",
]
