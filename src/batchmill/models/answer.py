"""What an endpoint answers."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from batchmill.errors import ModelAnswerTooLong, ModelBadAnswer, ModelDeclined

T = TypeVar("T", bound=BaseModel)

# A larger count is a mistake of the endpoint.
MOST_TOKENS = 10**12
FENCE = "```"


@dataclass(frozen=True, slots=True)
class ModelAnswer(Generic[T]):
    """The validated answer, and the tokens that the endpoint reported: 0 if it reported none."""

    value: T
    prompt_tokens: int
    completion_tokens: int


class Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class Choice(BaseModel):
    message: Message
    finish_reason: str | None = None


class Completion(BaseModel):
    """The parts of an answer that are used. `usage` may be anything: endpoints differ."""

    choices: list[Choice]
    usage: Any = None

    def tokens(self, name: str) -> int:
        count = self.usage.get(name) if isinstance(self.usage, dict) else None
        return count if type(count) is int and 0 <= count <= MOST_TOKENS else 0


def read_completion(body: bytes) -> Completion:
    try:
        return Completion.model_validate_json(body)
    except ValidationError as error:
        raise bad_answer() from error


def read_value(completion: Completion, output: type[T]) -> T:
    if not completion.choices:
        raise bad_answer()
    choice = completion.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise ModelDeclined("The AI model declined to answer.")
    if choice.finish_reason == "length":
        raise ModelAnswerTooLong("The AI model's answer is too long.")
    try:
        return output.model_validate_json(without_fence(choice.message.content or ""))
    except ValidationError as error:
        raise bad_answer() from error


def without_fence(text: str) -> str:
    """Models often put JSON into a block of Markdown. A regular expression for this can backtrack
    for minutes, and it blocks all threads meanwhile."""
    text = text.strip()
    if len(text) < 2 * len(FENCE) or not (text.startswith(FENCE) and text.endswith(FENCE)):
        return text
    return text[len(FENCE) : -len(FENCE)].removeprefix("json").strip()


def bad_answer() -> ModelBadAnswer:
    return ModelBadAnswer("The AI model's answer does not have the requested format.")
