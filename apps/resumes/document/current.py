"""A document under the current names of JSON Resume, for editors."""

from typing import Any

from apps.resumes.document.node import Node
from apps.resumes.document.read import checked, resume_of
from apps.resumes.document.resume import Part

Origins = dict[int, tuple[Any, Node]]


def with_current_names(data: Any) -> dict[str, Any]:
    """Keeps the fields that JSON Resume does not define, each in its object, so that an editor
    loses nothing. Raises `InvalidDocument`."""
    origins: Origins = {}
    resume = resume_of(Node(checked(data), "$", origins))
    return _with_unknown(resume, resume.as_json(), origins)


def _with_unknown(part: Part, written: dict[str, Any], origins: Origins) -> dict[str, Any]:
    """`written` is the part as JSON, without its empty fields."""
    for name, field in type(part).model_fields.items():
        key, value = field.alias or name, getattr(part, name)
        if isinstance(value, Part):
            written[key] = _with_unknown(value, written.get(key, {}), origins)
        elif isinstance(value, tuple) and value and isinstance(value[0], Part):
            pairs = zip(value, written[key], strict=True)
            written[key] = [_with_unknown(each, own, origins) for each, own in pairs]
    _, origin = origins.get(id(part), (None, None))
    unknown = origin.unknown if origin else {}
    return unknown | {key: value for key, value in written.items() if value != {}}
