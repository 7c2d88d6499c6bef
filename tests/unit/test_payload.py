import json
import math
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, computed_field
from pydantic_core import from_json
from typing_extensions import TypedDict

from batchmill.domain.payload import DEEPEST, LIMIT, Codec, is_deeper
from batchmill.errors import InvalidInput, InvalidPayload, PayloadTooLarge

storable_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**300), 10**300),
        st.floats(allow_nan=False, allow_infinity=False),
        storable_text,
    ),
    lambda inner: st.lists(inner) | st.dictionaries(storable_text, inner),
    max_leaves=20,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Sheet(BaseModel):
    url: str
    pages: list[int] = []
    weight: float | None = None


class Meet(BaseModel):
    sheets: list[Sheet]


@dataclass
class Point:
    x: float
    name: str = "origin"
    tags: set[str] = field(default_factory=set)
    raw: bytes = b""


class Swimmer(TypedDict):
    name: str
    born: datetime


def nested(depth: int) -> Any:
    value: Any = "bottom"
    for level in range(depth):
        value = [value] if level % 2 else {"in": value}
    return value


def refusal(annotation: Any, value: Any) -> tuple[str, str]:
    with pytest.raises(InvalidPayload) as refused:
        Codec(annotation).dump(value)
    return refused.value.path, refused.value.reason


class TestRoundTrip:
    @pytest.mark.parametrize("annotation", [None, type(None), Any, int | None])
    def test_none(self, annotation: Any):
        codec = Codec(annotation)
        assert codec.dump(None) == "null"
        assert codec.load("null") is None

    @pytest.mark.parametrize(("annotation", "value"), [(None, 1), (int, None)])
    def test_none_and_values_do_not_replace_each_other(self, annotation: Any, value: Any):
        assert refusal(annotation, value)[0] == "$"

    @given(json_values)
    def test_any_json_value(self, value: Any):
        codec = Codec()
        text = codec.dump(value)
        assert repr(codec.load(text)) == repr(value)
        assert repr(codec.load(text.encode())) == repr(value)
        assert repr(codec.load_parsed(value)) == repr(value)

    @given(
        st.builds(
            Point,
            st.floats(allow_nan=False, allow_infinity=False),
            storable_text,
            st.sets(storable_text),
            st.binary(),
        )
    )
    def test_dataclasses(self, point: Point):
        codec = Codec(Point)
        text = codec.dump(point)
        assert codec.load(text) == codec.load_parsed(from_json(text)) == point

    @given(st.builds(Sheet, url=storable_text, pages=st.lists(st.integers())))
    def test_models(self, sheet: Sheet):
        codec = Codec(Sheet)
        text = codec.dump(sheet)
        assert codec.load(text) == codec.load_parsed(from_json(text)) == sheet
        assert codec.dump(sheet.model_dump()) == text

    @pytest.mark.parametrize(
        ("annotation", "value"),
        [
            (None, None),
            (int, 10**4000),
            (float, -0.0),
            (str, "snow ☃ and 🏊"),
            (str, "a backslash, then u0000: \\u0000"),
            (str, "already replaced: \ufffd"),
            (str, "NaN, Infinity and null are words here"),
            (bytes, b"\x00\xff"),
            (datetime, datetime(2026, 1, 1, 12, 30, 0, 5, tzinfo=UTC)),
            (timedelta, timedelta(days=1, microseconds=3)),
            (uuid.UUID, uuid.UUID(int=7)),
            (Decimal, Decimal("1.10")),
            (Colour, Colour.BLUE),
            (Path, Path("/tmp/x")),
            (tuple[int, str], (1, "a")),
            (set[int], {1, 2}),
            (frozenset[Colour], frozenset({Colour.RED})),
            (dict[int, bytes], {1: b"\xff"}),
            (Swimmer, {"name": "Ada", "born": datetime(2010, 5, 5, tzinfo=UTC)}),
            (Point | None, Point(1.5, raw=b"\xfe")),
            (list[Sheet | Point], [Sheet(url="u"), Point(0)]),
            (Annotated[int, Field(ge=3)], 3),
            (dict, {"a": [1]}),
        ],
    )
    def test_typed_values(self, annotation: Any, value: Any):
        codec = Codec(annotation)
        text = codec.dump(value)
        for back in (codec.load(text), codec.load_parsed(from_json(text))):
            assert back == value
            assert type(back) is type(value)

    def test_defaults_are_written_and_plain_data_becomes_an_instance(self):
        codec = Codec(Sheet)
        text = codec.dump({"url": "u"})
        assert text == '{"url":"u","pages":[],"weight":null}'
        assert codec.load(text) == Sheet(url="u")

    def test_instances_inside_any_are_written_as_their_data(self):
        text = Codec().dump({"sheet": Sheet(url="u"), "when": datetime(2026, 1, 1)})
        assert from_json(text)["sheet"]["url"] == "u"

    def test_aliases_are_written_and_computed_fields_are_not(self):
        class Page(BaseModel):
            number: int = Field(alias="pageNumber")
            model_config = ConfigDict(extra="forbid")

            @computed_field
            @property
            def next(self) -> int:
                return self.number + 1

        codec = Codec(Page)
        assert codec.dump({"pageNumber": 3}) == '{"pageNumber":3}'
        assert codec.load('{"pageNumber":3}').next == 4


class TestRefusals:
    def test_the_first_error_has_its_path_and_the_rest_are_counted(self):
        meet = {"sheets": [{"url": "a"}, {"url": "b"}, {"url": 3, "pages": ["x"]}]}
        assert refusal(Meet, meet) == (
            "$.sheets[2].url",
            "Input should be a valid string (and 1 more)",
        )

    @pytest.mark.parametrize(
        ("annotation", "value", "path"),
        [
            (int, "x", "$"),
            (Sheet, {}, "$.url"),
            (Sheet | Point, {}, "$.url"),
            (list[int | None], [1, "x"], "$[1]"),
            (list[Sheet | int], [{"url": 3}], "$[0].url"),
            (dict[str, list[int]], {"two words": ["x"]}, '$["two words"][0]'),
            (dict[int, int], {"x": 1}, "$.x"),
            (tuple[int, int], [1], "$[1]"),
            (set[int], ["x"], "$[0]"),
            (Swimmer, {"name": "Ada", "born": "soon"}, "$.born"),
            (Literal["a", "b"], "c", "$"),
        ],
    )
    def test_the_path_points_to_the_invalid_value(self, annotation: Any, value: Any, path: str):
        assert refusal(annotation, value)[0] == path

    def test_an_unvalidated_instance_is_validated(self):
        assert refusal(Point, Point(x="far"))[0] == "$.x"  # pyright: ignore[reportArgumentType]
        assert refusal(Meet, Meet.model_construct(sheets=[Sheet.model_construct(url=1)])) == (
            "$.sheets[0].url",
            "Input should be a valid string",
        )

    def test_a_value_that_could_not_be_read_back_is_refused(self):
        class Lopsided(BaseModel):
            number: int = Field(validation_alias=AliasChoices("in", "into"))

        assert refusal(Lopsided, {"in": 1})[1] == "Field required"
        assert refusal(int, 10**5000)[0] == "$"

    @pytest.mark.parametrize(
        ("annotation", "value", "path"),
        [
            (float, math.nan, "$"),
            (Any, -math.inf, "$"),
            (Any, {"a": [1, {"b": math.inf}]}, "$.a[1].b"),
            (Any, {"sheet": Sheet(url="u", weight=math.nan)}, "$.sheet.weight"),
            (Sheet, Sheet(url="u", weight=math.nan), "$.weight"),
            (Meet, {"sheets": [{"url": "u", "weight": math.inf}]}, "$.sheets[0].weight"),
            (Point, Point(math.nan), "$.x"),
            (list[float], [1.0, math.nan], "$[1]"),
        ],
    )
    def test_a_number_that_is_not_finite_is_refused(self, annotation: Any, value: Any, path: str):
        assert refusal(annotation, value) == (path, "Input should be a finite number")

    @pytest.mark.parametrize("bad", ["a\0b", "a\ud800b"])
    @pytest.mark.parametrize(
        ("annotation", "wrap", "path"),
        [
            (Any, lambda text: text, "$"),
            (Any, lambda text: {"a": [0, text]}, "$.a[1]"),
            (Any, lambda text: {"a": {text: 1}}, "$.a[{}]"),
            (dict[str, int], lambda text: {text: 1}, "$[{}]"),
            (Sheet, lambda text: {"url": text}, "$.url"),
            (Point, lambda text: Point(1, name=text), "$.name"),
            (list[Sheet], lambda text: [Sheet.model_construct(url=text)], "$[0].url"),
        ],
    )
    def test_text_that_postgres_cannot_store_is_refused(
        self, annotation: Any, wrap: Any, path: str, bad: str
    ):
        refused_path, reason = refusal(annotation, wrap(bad))
        assert refused_path == path.format(json.dumps(bad))
        assert "NUL character or a lone surrogate" in reason or "unicode string" in reason

    def test_a_value_whose_text_postgres_cannot_store_is_refused(self):
        assert refusal(list[Path], [Path("a\0b")])[0] == "$[0]"
        assert "surrogates not allowed" in refusal(list[Path], [Path("a\ud800b")])[1]

    @pytest.mark.parametrize("annotation", [Any, list[Any] | dict[str, Any]])
    def test_nesting_over_a_hundred_levels_is_refused(self, annotation: Any):
        codec = Codec(annotation)
        assert codec.load(codec.dump(nested(DEEPEST))) == nested(DEEPEST)
        for depth in (DEEPEST + 1, 201, 256, 5000):
            assert refusal(annotation, nested(depth)) == (
                "$",
                "Input is nested more than 100 levels deep",
            )

    def test_brackets_inside_text_are_not_nesting(self):
        assert Codec().load(Codec().dump("[" * 1000)) == "[" * 1000

    def test_many_shallow_containers_are_accepted(self):
        assert len(Codec().load(Codec().dump([[]] * 1000))) == 1000

    @pytest.mark.parametrize(
        ("value", "depth"),
        [
            (1, 0),
            ([], 1),
            ({"[": "{"}, 1),
            ([{}, [], [[1]]], 3),
            ([[[]], ['"[[[', "\\", "[[[", '\\"[[[', [[1]]]], 4),
            ({'\\"': {"ä\\\\": [{"}": "]"}]}}, 4),
        ],
    )
    def test_the_depth_of_a_text_is_measured(self, value: Any, depth: int):
        for text in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
            assert not is_deeper(text, depth)
            assert depth == 0 or is_deeper(text, depth - 1)

    def test_data_that_contains_itself_is_refused(self):
        loop: list[Any] = []
        loop += [loop, loop]
        assert refusal(Any, {"loop": loop}) == ("$", "Input is nested more than 100 levels deep")

    def test_a_value_that_json_cannot_represent_is_refused(self):
        path, reason = refusal(Any, {"a": object()})
        assert path == "$"
        assert "cannot be written as JSON" in reason

    def test_a_type_that_json_cannot_represent_is_refused(self):
        with pytest.raises(InvalidInput, match=r"Socket.* cannot be converted to JSON: Unable"):
            Codec(type("Socket", (), {}))

    @pytest.mark.parametrize("text", ["", "{", "[1,]", "nul", '"\\ud800"', b"\xff"])
    def test_text_that_is_not_json_is_refused(self, text: str | bytes):
        with pytest.raises(InvalidPayload, match=r"\$: Invalid JSON"):
            Codec().load(text)

    def test_loading_checks_the_type(self):
        with pytest.raises(InvalidPayload, match=r"\$\.url: Field required"):
            Codec(Sheet).load("{}")
        with pytest.raises(
            InvalidPayload, match=r"\$\.pages\[0\]: Input should be a valid integer"
        ):
            Codec(Sheet).load_parsed({"url": "u", "pages": ["x"]})


class TestSize:
    def test_a_payload_over_the_limit_is_refused(self):
        text = "x" * (LIMIT - 2)
        assert len(Codec(str).dump(text)) == LIMIT
        with pytest.raises(PayloadTooLarge) as refused:
            Codec(str).dump(text + "x")
        assert str(refused.value) == (
            "The payload is 1,048,577 bytes of JSON; the limit is 1,048,576."
        )

    def test_the_limit_counts_bytes_of_utf8(self):
        assert Codec(str).dump("é", limit=4) == '"é"'
        with pytest.raises(PayloadTooLarge):
            Codec(str).dump("é", limit=3)
