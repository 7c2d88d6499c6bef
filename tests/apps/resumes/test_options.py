"""The options of an export."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.resumes.options import (
    MAX_KEYWORDS,
    MAX_TEXT,
    TEMPLATES,
    ColorMode,
    ExportOptions,
    InvalidOptions,
    Margins,
    Metadata,
    PageSize,
    Quality,
    read_options,
)

SECRET = "Zanzibar"


def refusal(**options: Any) -> InvalidOptions:
    with pytest.raises(InvalidOptions) as refused:
        read_options(options)
    return refused.value


def test_defaults():
    for options in (read_options(None), read_options({}), ExportOptions()):
        assert options.page_size == PageSize.LETTER
        assert options.margins == Margins(top=1, right=1, bottom=1, left=1)
        assert options.quality == Quality.NORMAL
        assert options.color_mode == ColorMode.COLOR
        assert options.template == "minimal"
        assert options.metadata == Metadata()


def test_all_options():
    given = {
        "pageSize": "A4",
        "margins": {"top": 0, "right": 0.5, "bottom": 2, "left": 1.25},
        "quality": "high",
        "colorMode": "grayscale",
        "template": "serif",
        "metadata": {
            "title": "Tilda",
            "author": "T. Quillfeather",
            "subject": "Resume",
            "keywords": ["SQL", "Go"],
            "creator": "Feathers",
        },
    }
    options = read_options(given)
    assert options.model_dump(mode="json", by_alias=True) == given
    assert options.page_size is PageSize.A4
    assert options.margins.left == 1.25


def test_page_sizes_in_points():
    assert [tuple(map(round, size.points)) for size in PageSize] == [
        (612, 792),
        (595, 842),
        (612, 1008),
    ]
    assert PageSize.A4.points == (595.28, 841.89)


def test_the_designs():
    assert TEMPLATES == ("minimal", "columns", "compact", "serif", "modern")
    for slug in TEMPLATES:
        assert read_options({"template": slug}).template == slug


def test_margins_by_one_number_or_by_side():
    assert read_options({"margins": 0.5}).margins == Margins(
        top=0.5, right=0.5, bottom=0.5, left=0.5
    )
    assert read_options({"margins": {"left": 0.5}}).margins == Margins(left=0.5)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"pageSize": SECRET}, "options.pageSize"),
        ({"pageSize": "letter"}, "options.pageSize"),
        ({"pageSize": None}, "options.pageSize"),
        ({"pageSize": 4}, "options.pageSize"),
        ({"pageSize": "\ud800"}, "options.pageSize"),
        ({"quality": "best"}, "options.quality"),
        ({"colorMode": "grey"}, "options.colorMode"),
        ({"template": SECRET}, "options.template"),
        ({"template": "../minimal"}, "options.template"),
        ({"template": ["minimal"]}, "options.template"),
        ({"margins": "1"}, "options.margins"),
        ({"margins": True}, "options.margins"),
        ({"margins": None}, "options.margins"),
        ({"margins": []}, "options.margins"),
        ({"margins": 3}, "options.margins.top"),
        ({"margins": float("nan")}, "options.margins.top"),
        ({"margins": {"left": -0.1}}, "options.margins.left"),
        ({"margins": {"left": 2.01}}, "options.margins.left"),
        ({"margins": {"left": "1"}}, "options.margins.left"),
        ({"margins": {"left": True}}, "options.margins.left"),
        ({"margins": {"left": None}}, "options.margins.left"),
        ({"margins": {"bottom": float("inf")}}, "options.margins.bottom"),
        ({"margins": {"bottom": 10**400}}, "options.margins.bottom"),
        ({"margins": {"middle": 1}}, "options.margins.middle"),
        ({"metadata": SECRET}, "options.metadata"),
        ({"metadata": {"title": 7}}, "options.metadata.title"),
        ({"metadata": {"title": f"{SECRET}\0"}}, "options.metadata.title"),
        ({"metadata": {"author": f"{SECRET}\ud800"}}, "options.metadata.author"),
        ({"metadata": {"subject": "x" * (MAX_TEXT + 1)}}, "options.metadata.subject"),
        ({"metadata": {"keywords": {"a": 1}}}, "options.metadata.keywords"),
        ({"metadata": {"keywords": ["a"] * (MAX_KEYWORDS + 1)}}, "options.metadata.keywords"),
        ({"metadata": {"keywords": ["a", 7]}}, "options.metadata.keywords"),
        ({"metadata": {"producer": "x"}}, "options.metadata.producer"),
        ({"page_sise": "A4"}, "options.page_sise"),
        ({"format": "pdf"}, "options.format"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], field: str):
    error = refusal(**options)
    assert error.field == field
    assert str(error).startswith(f"{field}: ")
    assert SECRET not in str(error)
    assert "not valid" not in error.reason


@pytest.mark.parametrize("options", [[], "A4", 7, True])
def test_options_are_an_object(options: Any):
    with pytest.raises(InvalidOptions) as refused:
        read_options(options)
    assert refused.value.field == "options"


def test_the_reason_names_the_choices():
    assert refusal(pageSize="A5").reason == "It must be 'Letter', 'A4' or 'Legal'."
    assert "'columns'" in refusal(template="x").reason
    assert "2 inches" in refusal(margins=3).reason


def test_a_long_unknown_name_is_cut():
    assert len(refusal(**{"x" * 5_000: 1}).field) < 100


def test_an_unknown_name_can_be_printed():
    assert refusal(**{"a\0\nb": 1}).field == "options.a??b"
    assert refusal(**{"a\ud800": 1}).field == "options"


def test_names_of_python_are_not_options():
    assert ExportOptions(page_size=PageSize.A4).page_size is PageSize.A4
    assert refusal(page_size="A4").field == "options.page_size"
    assert refusal(color_mode="color").field == "options.color_mode"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"pageSize": "Letter", "margins": 1, "metadata": {}}),
        ({"margins": 0}, {"margins": {"top": 0.0, "left": -0.0, "right": 0, "bottom": -0.0}}),
        (
            {"metadata": {"keywords": "SQL, Go;  Rust "}},
            {"metadata": {"keywords": ["SQL", "Go", "Rust"]}},
        ),
        ({"metadata": {"keywords": ["Go", "Go", ""]}}, {"metadata": {"keywords": "Go"}}),
        ({"metadata": {"title": "  "}}, {"metadata": {"title": None}}),
        ({"metadata": {"title": "A\n B"}}, {"metadata": {"title": "A B"}}),
        ({"metadata": None}, {}),
    ],
)
def test_the_same_meaning_has_the_same_canonical_form(one: Any, other: Any):
    assert read_options(one).canonical() == read_options(other).canonical()


@pytest.mark.parametrize(
    "options",
    [
        {"pageSize": "A4"},
        {"margins": {"left": 0.5}},
        {"quality": "draft"},
        {"colorMode": "grayscale"},
        {"template": "modern"},
        {"metadata": {"title": "T"}},
        {"metadata": {"keywords": "K"}},
    ],
)
def test_another_meaning_has_another_canonical_form(options: Any):
    assert read_options(options).canonical() != read_options({}).canonical()


inches = st.floats(0, 2) | st.integers(0, 2)
margins = inches | st.dictionaries(st.sampled_from(["top", "right", "bottom", "left"]), inches)


@given(
    margins,
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20), max_size=5
    ),
)
def test_options_survive_a_payload(margins: Any, keywords: list[str]):
    options = read_options({"margins": margins, "metadata": {"keywords": keywords}})
    assert ExportOptions.model_validate_json(options.model_dump_json()) == options
    assert read_options(options.model_dump(mode="json", by_alias=True)) == options
    again = ExportOptions.model_validate_json(options.model_dump_json())
    assert again.canonical() == options.canonical()


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["pageSize", "margins", "top", "metadata", "title", "keywords", "template"]
                ),
                inner,
                max_size=4,
            )
        ),
    )
)
def test_any_json_is_accepted_or_refused_with_a_field(data: Any):
    try:
        read_options(data)
    except InvalidOptions as error:
        assert error.field.startswith("options")
