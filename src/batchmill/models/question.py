"""What a model is asked, as the body of a request."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

# How the endpoint is asked for JSON. Endpoints that do not support the first may support another.
OutputMode = Literal["json_schema", "json_object", "text"]


@dataclass(frozen=True, slots=True)
class ModelImage:
    """An image as part of a question."""

    data: bytes
    media_type: str = "image/png"

    @property
    def url(self) -> str:
        return f"data:{self.media_type};base64,{b64encode(self.data).decode()}"


Part = str | ModelImage


@dataclass(frozen=True, slots=True)
class Question:
    """The model answers with JSON that fits the schema of `output`, or with plain text if that is
    None."""

    parts: Sequence[Part]
    output: type[BaseModel] | None = None
    instructions: str = ""

    def body(self, model: str, mode: OutputMode, options: Mapping[str, Any]) -> dict[str, Any]:
        if self.output is None:
            return {"model": model, "messages": self._messages(self.instructions), **options}
        schema = self.output.model_json_schema()
        instructions = self.instructions
        if mode != "json_schema":
            # Without `json_schema`, only the instructions contain the schema.
            instructions = f"{instructions}\n\n{SCHEMA_PROMPT}\n{json.dumps(schema)}".strip()
        messages = self._messages(instructions)
        return {"model": model, "messages": messages, **_format(mode, schema), **options}

    def _messages(self, instructions: str) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = [{"role": "user", "content": self._content()}]
        if instructions:
            messages.insert(0, {"role": "system", "content": instructions})
        return messages

    def _content(self) -> str | list[dict[str, Any]]:
        """Text alone is sent in the form that every endpoint understands."""
        texts = [part for part in self.parts if isinstance(part, str)]
        if len(texts) == len(self.parts):
            return "\n\n".join(texts)
        return [_written(part) for part in self.parts]


SCHEMA_PROMPT = "Answer with one JSON object, and nothing else, that fits this JSON schema:"


def _format(mode: OutputMode, schema: dict[str, Any]) -> dict[str, Any]:
    match mode:
        case "json_schema":
            named = {"name": "answer", "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case "json_object":
            return {"response_format": {"type": "json_object"}}
        case "text":
            return {}


def _written(part: Part) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": part.url}}
