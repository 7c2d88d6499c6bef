"""How an export looks. JSON uses camelCase names; anything that is not listed here is refused with
the name of the field, such as `options.margins.left`."""

import json
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, PydanticCustomError

from apps.resumes.document.text import fault_of, one_line
from batchmill import InvalidInput

TemplateSlug = Literal["minimal", "columns", "compact", "serif", "modern"]
TEMPLATES: tuple[TemplateSlug, ...] = get_args(TemplateSlug)

POINTS_PER_INCH = 72
MAX_MARGIN = 2
MAX_TEXT = 500
MAX_KEYWORDS = 50
MAX_SHOWN_NAME = 40
SIDES = ("top", "right", "bottom", "left")


class InvalidOptions(InvalidInput):
    """`field` is the name of the option. `reason` never quotes its value."""

    code = "INVALID_OPTIONS"

    def __init__(self, field: str, reason: str):
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


class Size(NamedTuple):
    """In points, of which an inch has 72."""

    width: float
    height: float


class PageSize(StrEnum):
    LETTER = "Letter"
    A4 = "A4"
    LEGAL = "Legal"

    @property
    def points(self) -> Size:
        return PAGES[self]


PAGES = {
    PageSize.LETTER: Size(612, 792),
    PageSize.A4: Size(595.28, 841.89),
    PageSize.LEGAL: Size(612, 1008),
}


class Quality(StrEnum):
    """The resolution of images."""

    DRAFT = "draft"
    NORMAL = "normal"
    HIGH = "high"


class ColorMode(StrEnum):
    COLOR = "color"
    GRAYSCALE = "grayscale"


class Options(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid"
    )


def positive_zero(value: Any) -> Any:
    """-0.0 equals 0.0 but is written differently, and the fingerprint is made of the text."""
    return 0.0 if type(value) is float and value == 0 else value


Inches = Annotated[
    float,
    BeforeValidator(positive_zero),
    Field(strict=True, ge=0, le=MAX_MARGIN, allow_inf_nan=False),
]


def fault(reason: str) -> PydanticCustomError:
    return PydanticCustomError("fault", "{reason}", {"reason": reason})


class Margins(Options):
    """In inches. One number stands for all sides; a side that is not named has the default."""

    top: Inches = 1.0
    right: Inches = 1.0
    bottom: Inches = 1.0
    left: Inches = 1.0

    @model_validator(mode="before")
    @classmethod
    def _all_sides(cls, value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return dict.fromkeys(SIDES, value)
        if not isinstance(value, dict | Margins):
            raise fault("It must be a number, or an object with a number for each side.")
        return value


def metadata_text(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise fault("It must be a string.")
    if reason := fault_of(value):
        raise fault(reason)
    if len(value) > MAX_TEXT:
        raise fault(f"It must have at most {MAX_TEXT} characters.")
    return one_line(value) or None


def metadata_words(value: Any) -> tuple[str, ...]:
    """Keywords as a list, or as a text with commas or semicolons between them."""
    if isinstance(value, str):
        value = (metadata_text(value) or "").replace(";", ",").split(",")
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise fault("It must be a string or a list of strings.")
    if len(value) > MAX_KEYWORDS:
        raise fault(f"It must have at most {MAX_KEYWORDS} keywords.")
    words = (metadata_text(word) for word in value)
    return tuple(dict.fromkeys(word for word in words if word))


MetadataText = Annotated[str | None, BeforeValidator(metadata_text)]


class Metadata(Options):
    """The properties of the PDF. For those that are absent, the document's own are used."""

    title: MetadataText = None
    author: MetadataText = None
    subject: MetadataText = None
    keywords: Annotated[tuple[str, ...], BeforeValidator(metadata_words)] = ()
    creator: MetadataText = None


class ExportOptions(Options):
    page_size: PageSize = PageSize.LETTER
    margins: Margins = Margins()
    quality: Quality = Quality.NORMAL
    color_mode: ColorMode = ColorMode.COLOR
    template: TemplateSlug = "minimal"
    metadata: Metadata = Metadata()

    @field_validator("metadata", mode="before")
    @classmethod
    def _none_is_empty(cls, value: Any) -> Any:
        return {} if value is None else value

    def canonical(self) -> str:
        """The same text for all options with the same meaning."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


# Payloads and Python use them, requests do not.
PYTHON_NAMES = [name for name, field in ExportOptions.model_fields.items() if field.alias != name]


def read_options(data: Any) -> ExportOptions:
    """Options from the JSON of a request; None stands for the defaults. The first fault is raised
    as `InvalidOptions`."""
    refuse_python_names(data)
    try:
        return ExportOptions.model_validate({} if data is None else data)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise InvalidOptions(field_of(first), reason_of(first)) from None


def refuse_python_names(data: Any) -> None:
    for name in PYTHON_NAMES:
        if isinstance(data, dict) and name in data:
            raise InvalidOptions(f"options.{name}", NO_SUCH_OPTION)


def field_of(error: ErrorDetails) -> str:
    return "options" + "".join(f".{shown_name(str(name))}" for name in error["loc"])


def shown_name(name: str) -> str:
    """The name of a field, for an error. An unknown one is the caller's own text, so it is cut."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:MAX_SHOWN_NAME])


NO_SUCH_OPTION = "There is no such option."
REASONS = {
    "extra_forbidden": NO_SUCH_OPTION,
    "string_unicode": "It contains an invalid Unicode character.",
    "model_type": "It must be an object.",
    "float_type": "It must be a number.",
    "finite_number": "It must be a number.",
    "greater_than_equal": "It must be at least 0.",
    "less_than_equal": f"It must be at most {MAX_MARGIN} inches.",
}


def reason_of(error: ErrorDetails) -> str:
    match error["type"]:
        case "enum" | "literal_error":
            return f"It must be {error.get('ctx', {})['expected']}."
        case "fault":
            return error["msg"]
        case kind:
            return REASONS.get(kind, "It is not valid.")
