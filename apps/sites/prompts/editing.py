"""Prompts that users give, or edit before they are asked."""

import hashlib
import re
import unicodedata
from collections.abc import Sequence

from pydantic import model_validator

from apps.sites.answers import BusinessNames, names_business
from apps.sites.models import Model, Prompt
from apps.sites.prompts.forming import MOST
from batchmill import InvalidPayload

LONGEST = 500
LONGEST_ID = 40

_ID = re.compile(r"[a-z0-9][a-z0-9-]*")


class GivenPrompt(Model):
    """A prompt as clients send it: a text alone, or an object with the id of the prompt that it
    replaces."""

    text: str
    id: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: object) -> object:
        return {"text": given} if isinstance(given, str) else given


def edited_prompts(
    given: Sequence[GivenPrompt | str],
    names: BusinessNames,
    before: Sequence[Prompt] = (),
) -> list[Prompt]:
    """Checks prompts, and finds out which are direct: those that name the business.

    An id stays the same. A prompt without one gets that of the same text in `before`, or one that
    depends on its text alone. A text that is unchanged keeps its facts. Raises InvalidPayload.
    """
    if not 1 <= len(given) <= MOST:
        raise InvalidPayload(
            "prompts", f"{len(given)} prompts were given. Give from 1 to {MOST} prompts."
        )
    texts = {prompt.text: prompt for prompt in before}
    found = [_edited(index, _given(it), names, texts) for index, it in enumerate(given)]
    _require_different(found)
    return found


def _given(prompt: GivenPrompt | str) -> GivenPrompt:
    return GivenPrompt(text=prompt) if isinstance(prompt, str) else prompt


def _edited(
    index: int, given: GivenPrompt, names: BusinessNames, texts: dict[str, Prompt]
) -> Prompt:
    text = _checked_text(index, given.text)
    same = texts.get(text)
    id = _checked_id(index, given.id) or (same.id if same else _new_id(text))
    kind = "direct" if names_business(text, names) else "generic"
    return Prompt(id=id, text=text, kind=kind, facts=same.facts if same else [])


def _checked_text(index: int, given: str) -> str:
    path, text = f"prompts[{index}].text", given.strip()
    if not text:
        raise InvalidPayload(path, "The prompt is empty. Write a question, or leave it out.")
    if len(text) > LONGEST:
        raise InvalidPayload(
            path, f"The prompt has {len(text):,} characters. Shorten it to {LONGEST}."
        )
    if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in text):
        raise InvalidPayload(
            path, "The prompt has line breaks or control characters. Write it in one line."
        )
    return text


def _checked_id(index: int, id: str | None) -> str | None:
    if id is not None and not (len(id) <= LONGEST_ID and _ID.fullmatch(id)):
        raise InvalidPayload(
            f"prompts[{index}].id",
            f"The id is not valid. Use up to {LONGEST_ID} lowercase letters, digits and hyphens.",
        )
    return id


def _new_id(text: str) -> str:
    return f"own-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def _require_different(prompts: list[Prompt]) -> None:
    ids = [prompt.id for prompt in prompts]
    texts = [prompt.text for prompt in prompts]
    for index in range(len(prompts)):
        if ids[index] in ids[:index] or texts[index] in texts[:index]:
            raise InvalidPayload(
                f"prompts[{index}]", "The prompt is given twice. Leave one of them out."
            )
