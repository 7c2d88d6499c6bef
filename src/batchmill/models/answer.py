"""What an endpoint answers."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from batchmill.errors import ModelAnswerTooLong, ModelBadAnswer, ModelDeclined

T = TypeVar("T", bound=BaseModel)
Value = TypeVar("Value")

# A larger count is a mistake of the endpoint.
MOST_TOKENS = 10**12
TOKENS = ("prompt_tokens", "completion_tokens")
FENCE = "```"


@dataclass(frozen=True, slots=True)
class ModelAnswer(Generic[Value]):
    """The validated answer, and the tokens that the endpoint reported: 0 if it reported none. A
    text `is_cut` if the model reached its limit of tokens."""

    value: Value
    prompt_tokens: int
    completion_tokens: int
    is_cut: bool = False


class Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class Choice(BaseModel):
    message: Message
    finish_reason: str | None = None

    @property
    def is_cut(self) -> bool:
        return self.finish_reason == "length"


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


def answered(completion: Completion, value: Value, *, is_cut: bool = False) -> ModelAnswer[Value]:
    prompt, written = map(completion.tokens, TOKENS)
    return ModelAnswer(value, prompt, written, is_cut)


def read_value(completion: Completion, output: type[T]) -> T:
    choice = given_choice(completion)
    if choice.is_cut:
        raise ModelAnswerTooLong("The AI model's answer is too long.")
    try:
        return output.model_validate_json(without_fence(choice.message.content or ""))
    except ValidationError as error:
        raise bad_answer() from error


def read_text(completion: Completion) -> tuple[str, bool]:
    """The text, and whether it is cut. White space alone is no answer."""
    choice = given_choice(completion)
    text = (choice.message.content or "").strip()
    if not text:
        raise bad_answer()
    return text, choice.is_cut


def given_choice(completion: Completion) -> Choice:
    if not completion.choices:
        raise bad_answer()
    choice = completion.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise ModelDeclined("The AI model declined to answer.")
    return choice


def without_fence(text: str) -> str:
    """Models often put JSON into a block of Markdown. A regular expression for this can backtrack
    for minutes, and it blocks all threads meanwhile."""
    text = text.strip()
    if len(text) < 2 * len(FENCE) or not (text.startswith(FENCE) and text.endswith(FENCE)):
        return text
    return text[len(FENCE) : -len(FENCE)].removeprefix("json").strip()


def bad_answer() -> ModelBadAnswer:
    return ModelBadAnswer("The AI model's answer does not have the requested format.")
