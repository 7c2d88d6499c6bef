"""The JSON scanner: what it reads, what it refuses, and how much it decodes at once."""

import io
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchmill.service import json as service_json
from batchmill.service.json import BLOCK, DEEPEST, LONG, MOST_SPACE, Scanner, parsed
from batchmill.service.problems import BadRequest, TooLarge

MOST = 4_000_000
# Items of a list, and pairs of an object, that are longer than a block.
ITEMS = ",".join(["[1,{}]"] * 3_000)
PAIRS = ",".join(f'"{number}":[{number}]' for number in range(2_000))

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)


def read(text: str | bytes, most: int = MOST, deepest: int = DEEPEST) -> Any:
    return end_of(scanner_of(text).value(most, deepest))


def scanner_of(text: str | bytes) -> Scanner:
    return Scanner(io.BytesIO(text if isinstance(text, bytes) else text.encode()))


def end_of(steps: Any) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def inside(text: str) -> Iterator[str]:
    """Yields long values that contain this text in place of an inner item."""
    yield f"[{ITEMS},{text},{ITEMS}]"
    yield f'{{{PAIRS},"x":{text},"y":[{ITEMS}]}}'
    yield f'[{ITEMS},{{"a":[[{ITEMS},{{{PAIRS},"x":{text},"y":1}}]]}},{ITEMS}]'


def refusal(text: str | bytes, **bounds: int) -> str:
    with pytest.raises(BadRequest) as refused:
        read(text, **bounds)
    return str(refused.value)


@pytest.mark.parametrize("indent", [None, 3])
@pytest.mark.parametrize("ascii", [True, False])
@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(VALUES, min_size=1, max_size=6),
    count=st.sampled_from([1, 40, 300]),
    levels=st.integers(0, 40),
    length=st.sampled_from([0, BLOCK - 1, BLOCK, 5 * BLOCK]),
    seed=st.integers(0, 99),
)
def test_long_values_are_read_correctly(
    indent: int | None, ascii: bool, values: list[Any], count: int, levels: int, length: int, seed: int
) -> None:  # fmt: skip
    chance = random.Random(seed)
    value: Any = [chance.choice(values) for _ in range(count)] + ["ä" * length]
    for level in range(levels):
        more = chance.choice(values)
        value = {"a": more, "b" * (level + 1): value} if chance.random() < 0.5 else [more, value, more]  # fmt: skip
    # The second item makes the text longer than a block.
    text = json.dumps([value, "x" * BLOCK], indent=indent, ensure_ascii=ascii)
    scanner = scanner_of(text + " ,")
    assert scanner.short_value() is LONG
    assert end_of(scanner.value(len(text))) == json.loads(text)
    assert scanner.passed == len(text)
    assert scanner.next() == ","


@pytest.mark.parametrize(
    "text", ["12345.5e-13", "-0.125", "1E+2", '"\\ud83d\\ude00"', '"\\u00e4\\n"', "true", '{"nä":"\U0001f600"}', "[ ]"]
)  # fmt: skip
def test_a_value_is_read_correctly_at_any_block_boundary(text: str) -> None:
    items, pairs = ",".join([text] * 3_000), ",".join(f'"{n}":{text}' for n in range(2_000))
    for shift in range(len(text) + 8):
        long = f'[{"1" * (shift + 1)},{items},{{"{"x" * shift}":1,{pairs}}}]'
        assert read(long) == json.loads(long)


@pytest.mark.parametrize(
    "text",
    ["1." + "0" * 3 * BLOCK, '"' + "\\ud83d\\ude00" * BLOCK + '"', '"' + '[{\\"' * 3 * BLOCK + '"',
     "[" + " " * 2 * BLOCK + "]", "{" + "\n" * 2 * BLOCK + "}", '{"' + "n" * 2 * BLOCK + '" : 1}'],
)  # fmt: skip
def test_long_tokens_are_read_alone_and_inside_other_values(text: str) -> None:
    for each in (text, *inside(text)):
        assert read(each) == json.loads(each)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":1,"b":2,"a":3}', "an object has the same name twice"),
        (f'{{"0":1,{PAIRS}}}', "an object has the same name twice"),
        (f'{{{PAIRS},"a":1,"1999":1}}', "an object has the same name twice"),
        ('"\\u0000"', "a string has a NUL character or a lone surrogate"),
        ('{"\\u0000":1}', "a string has a NUL character or a lone surrogate"),
        ('"\\ud83d"', "a string has a NUL character or a lone surrogate"),
        ('["\\ud83d","\\ude00"]', "a string has a NUL character or a lone surrogate"),
        ('"' + "x" * 3 * BLOCK + '\\ude00"', "a string has a NUL character or a lone surrogate"),
        ("NaN", "NaN is not a JSON number"),
        ("-Infinity", "-Infinity is not a JSON number"),
        ("1e999", "a number is too large"),
        ("x", "Expecting value"),
        ("tru", "Expecting value"),
        ("", "Expecting value"),
        ("[1,]", "Expecting value"),
        (f"[{ITEMS},]", "Expecting value"),
        ("1 2", "Expecting ',' delimiter"),
        ('[1,"a" "b"]', "Expecting ',' delimiter"),
        ('{"a":1 "b":2}', "Expecting ',' delimiter"),
        ("[1}", "Expecting ',' delimiter"),
        ("01", "Expecting ',' delimiter"),
        ('{"a" 1}', "Expecting ':' delimiter"),
        ('{"a"}', "Expecting ':' delimiter"),
        ('{"a":}', "Expecting value"),
        ('{"a":1,}', "Expecting property name enclosed in double quotes"),
        (f"{{{PAIRS},}}", "Expecting property name enclosed in double quotes"),
        ("{1:2}", "Expecting property name enclosed in double quotes"),
        ("{[]:2}", "Expecting property name enclosed in double quotes"),
        ('"\\x"', "Invalid \\escape"),
        ('"\n"', "Invalid control character at"),
    ],
)
def test_an_error_inside_a_long_value_is_refused(text: str, reason: str) -> None:
    for long in inside(text):
        assert refusal(long).startswith(f"The body is not acceptable JSON: {reason}")


def test_truncated_long_and_short_values_are_refused_with_the_same_message() -> None:
    end = '"nä" : [ 12.5e3 , true,"\\ud83d\\ude00",{"a":"x\\n"} ] }'
    for size in range(len(end)):
        short, long = (f"{{{pairs},{end[:size]}" for pairs in ('"0":1', PAIRS))
        with pytest.raises(BadRequest) as refused:
            parsed(short.encode())
        assert refusal(long) == str(refused.value), end[:size]


@pytest.mark.parametrize("text", [f"[{ITEMS}]", f"{{{PAIRS}}}", '"' + "x" * 3 * BLOCK + '"'])
def test_a_value_over_the_character_limit_is_refused(text: str) -> None:
    for behind in ("", " ", ",1]"):
        assert read(text + behind, most=len(text)) == json.loads(text)
        with pytest.raises(TooLarge, match=f"longer than the limit of {len(text) - 1} characters"):
            read(text + behind, most=len(text) - 1)
    for long in inside(text):
        with pytest.raises(TooLarge):
            read(long, most=len(long) - 1)


def test_reading_stops_soon_after_the_character_limit() -> None:
    for text in ("[" + "[]," * MOST, '"' + "x" * MOST, '{"a":[' * 50 + "1," * MOST):
        file = io.BytesIO(text.encode())
        with pytest.raises(TooLarge):
            end_of(Scanner(file).value(10 * BLOCK))
        assert file.tell() <= 12 * BLOCK


@pytest.mark.parametrize("opening, closing", ["[]", ('{"a":', "}"), ("[[],", "]"), ('["[",', "]")])
def test_a_long_value_over_the_depth_limit_is_refused(opening: str, closing: str) -> None:
    for content in ("1", " " * 2 * BLOCK, f'"{"x" * 2 * BLOCK}"', ",".join(['"]["'] * 3_000)):
        inner = f"[{content}]"
        for levels in (DEEPEST - 1, DEEPEST):
            text = opening * levels + inner + closing * levels
            # The nested value is at the end or at the beginning of a list, which adds a level.
            for long in (f"[{ITEMS},{text}]", f"[{text},{ITEMS}]"):
                assert read(long, deepest=levels + 2) == json.loads(long)
                assert refusal(long, deepest=levels + 1) == "The JSON is nested too deeply."


@pytest.mark.parametrize("opening", ["[", '{"a":', "[1,", '{"a":1,"b":'])
def test_endless_nesting_is_refused(opening: str) -> None:
    for before in ("", "[" + ITEMS + ","):
        assert refusal(before + opening * 100_000) == "The JSON is nested too deeply."


def test_whitespace_inside_a_long_value_is_limited() -> None:
    fits, too_much = (f"[{ITEMS},{' ' * size}1]" for size in (MOST_SPACE, MOST_SPACE + 2 * BLOCK))
    assert read(fits) == json.loads(fits)
    assert "whitespace characters in a row" in refusal(too_much)


@pytest.mark.parametrize("data", [b"\xff", b"\xc3", b"\xed\xa0\x80"])
def test_a_long_value_that_is_not_utf_8_is_refused(data: bytes) -> None:
    for tail in (b'"', b'"]', b'",1]'):
        assert "codec can't decode" in refusal(f'[{ITEMS},"'.encode() + data + tail)


class Decoder:
    """Records the sizes of the texts that the decoder gets."""

    def __init__(self, decoder: json.JSONDecoder):
        self._decoder = decoder
        self.decode = decoder.decode
        self.sizes: list[int] = []

    def raw_decode(self, text: str, at: int = 0) -> tuple[Any, int]:
        if text[at : at + 1] != '"':
            self.sizes.append(len(text) - at)
        return self._decoder.raw_decode(text, at)


@pytest.fixture
def decoder(monkeypatch: pytest.MonkeyPatch) -> Decoder:
    recording = Decoder(service_json.DECODER)
    monkeypatch.setattr(service_json, "DECODER", recording)
    return recording


LONG_VALUES = {
    "lists": "[" + "[]," * 100_000 + "[]]",
    "pairs": f"{{{PAIRS}}}",
    "long lists": json.dumps([[[]] * 20_000] * 5),
    "after a long string": json.dumps(["x" * 100_000, [[]] * 100_000]),
    "after a long name": json.dumps({"x" * 100_000: [[]] * 100_000}),
    "characters of four bytes": json.dumps(["\U0001f600"] * 50_000, ensure_ascii=False),
}


@pytest.mark.parametrize("text", LONG_VALUES.values(), ids=LONG_VALUES)
def test_the_decoder_gets_at_most_one_block_at_a_time(text: str, decoder: Decoder) -> None:
    assert read(text) == json.loads(text)
    # One more character shows whether a number continues.
    assert max(decoder.sizes) <= BLOCK + 1


@pytest.mark.parametrize("opening, closing", ["[]", ('{"a":', "}"), ("[[],", "]"), ('["x",', "]")])
@pytest.mark.parametrize("size", [100, 1_000, 3_000, 9_000])
def test_nesting_does_not_multiply_the_work(
    opening: str, closing: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder must not read the same block again at each level."""
    seen = 0
    run = service_json.LongValue._piece

    def piece(value: service_json.LongValue) -> str:
        nonlocal seen
        seen += len(block := run(value))
        return block

    monkeypatch.setattr(service_json.LongValue, "_piece", piece)
    item = opening * 100 + "[" + "1," * (size // 2) + "1]" + closing * 100
    text = "[" + ",".join([item] * (300_000 // len(item))) + "]"
    assert read(text) == json.loads(text)
    assert seen < 30 * len(text)


@pytest.mark.parametrize("name", ["lists", "pairs", "long lists", "characters of four bytes"])
def test_the_scanner_does_not_keep_text_that_was_read(name: str) -> None:
    scanner = scanner_of(LONG_VALUES[name])
    for _ in scanner.value(MOST):
        assert len(scanner._text) <= 3 * BLOCK


@pytest.mark.parametrize("indent", [None, 2])
def test_many_short_items_are_read_in_one_step(indent: int | None) -> None:
    for value in ([[1, 2]] * 20_000, {str(number): {} for number in range(20_000)}):
        text = json.dumps(value, indent=indent)
        steps = sum(1 for _ in scanner_of(text).value(MOST))
        assert steps <= 2 * len(text) / BLOCK + 10
