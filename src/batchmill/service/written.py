"""JSON that the database already returns as text. It goes into answers unchanged: parsing and
serialising a megabyte of small values would block the event loop for hundreds of milliseconds."""

from collections.abc import Iterable, Mapping

from fastapi import Response
from pydantic import BaseModel


def with_texts(model: BaseModel, texts: Mapping[str, str | None]) -> str:
    """The model as JSON, with `texts` as the values of the fields with these names."""
    head = model.model_dump_json(exclude=set(texts))
    tail = ",".join(f'"{name}":{text or "null"}' for name, text in texts.items())
    return f"{head[:-1]},{tail}}}"


def list_of(texts: Iterable[str]) -> str:
    return f"[{','.join(texts)}]"


def answer(text: str) -> Response:
    return Response(text, media_type="application/json")
