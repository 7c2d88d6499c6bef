"""What models answered, and what the answers say about the business. JSON uses camelCase names."""

from decimal import Decimal
from typing import Literal

from pydantic import Field

from apps.sites.models import Model

NOT_CONFIGURED = "skipped: not_configured"
NOT_ASKED = "skipped: not_asked"


class Answer(Model):
    """What one model answered to one prompt. `is_cut` if the model or this application ended the
    text early. `cost` is in US dollars; it is None if the provider has no prices."""

    provider: str
    model: str
    prompt: str
    text: str
    is_cut: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal | None = None


class PromptFailure(Model):
    """Why a prompt has no answer of a provider. `message` is a sentence for users."""

    prompt: str
    code: str
    message: str


class ProviderAnswers(Model):
    """A provider is `partial` if only some prompts have an answer, and `failed` if none has."""

    provider: str
    model: str
    state: Literal["answered", "partial", "failed"]
    answers: list[Answer] = Field(default_factory=list)
    failures: list[PromptFailure] = Field(default_factory=list)


class Mention(Model):
    """Where an answer names the business. `start` and `end` count characters of the answer's text
    (Unicode code points). `rank` is the place among the businesses that the answer lists, or the
    number of the sentence if it lists none."""

    text: str
    kind: Literal["name", "domain"]
    start: int
    end: int
    rank: int
    ranked_by: Literal["business", "sentence"]
    sentence: str


class Score(Model):
    """The parts of a score, from 0 to 1, as means over `answers` answers. `value` is their weighted
    sum. All are rounded to four places."""

    value: float
    position: float
    visibility: float
    mentions: float
    answers: int = 1


class AnalysedAnswer(Model):
    """`score` is None for an answer to a direct question."""

    answer: Answer
    mentions: list[Mention] = Field(default_factory=list)
    score: Score | None = None


class AnswerName(Model):
    provider: str
    prompt: str


class Competitor(Model):
    """Another business that answers to generic questions name. `count` is the number of these
    answers, and `instead` the number of those among them that do not name the own business."""

    name: str
    count: int
    instead: int
    answers: list[AnswerName]


class Use(Model):
    """What answers used. `cost` is in US dollars; it is None if no answer has one."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal | None = None


class ProviderAnalysis(Model):
    """`score` is None if the provider answered no generic question."""

    provider: str
    model: str
    state: Literal["answered", "partial", "failed"]
    score: Score | None = None
    failures: list[PromptFailure] = Field(default_factory=list)
    use: Use = Use()


class PromptAnalysis(Model):
    """`score` is None if no provider answered, or the question is direct."""

    prompt: str
    score: Score | None = None


class ModelAnalysis(Model):
    """`score` is None if no generic question was answered. It is skipped if no provider is
    configured, or if the run was requested without asking."""

    state: Literal["completed", "skipped: not_configured", "skipped: not_asked"]
    score: Score | None = None
    providers: list[ProviderAnalysis] = Field(default_factory=list)
    prompts: list[PromptAnalysis] = Field(default_factory=list)
    answers: list[AnalysedAnswer] = Field(default_factory=list)
    competitors: list[Competitor] = Field(default_factory=list)
    use: Use = Use()
