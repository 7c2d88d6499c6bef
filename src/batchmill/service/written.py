"""JSON that the database has as text already. It goes into answers as it is: to read and write a
megabyte of small values would block the event loop for hundreds of milliseconds."""

from collections.abc import Iterable, Mapping

from fastapi import Response
from pydantic import BaseModel


def with_texts(model: BaseModel, texts: Mapping[str, str | None]) -> str:
    """The model as JSON, with these texts as the values of the fields of their names."""
    head = model.model_dump_json(exclude=set(texts))
    tail = ",".join(f'"{name}":{text or "null"}' for name, text in texts.items())
    return f"{head[:-1]},{tail}}}"


def list_of(texts: Iterable[str]) -> str:
    return f"[{','.join(texts)}]"


def answer(text: str) -> Response:
    return Response(text, media_type="application/json")
