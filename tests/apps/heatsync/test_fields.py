"""Adjacent fields without a gap are split."""

import pytest

from apps.heatsync.reader.fields import split_fields
from apps.heatsync.reader.table_header import find_table_headers
from apps.heatsync.reader.words import Word

LETTER = 5.0


def row(text: str) -> list[Word]:
    """All letters have the same width. Two spaces separate spans.

    `|` separates two spans without a gap.
    """
    words, x = [], 0.0
    for span, part in enumerate(text.split("  ")):
        for word in part.split(" "):
            plain = word.replace("|", "")
            if plain:
                seam = max(word.rfind("|"), 0)
                words.append(Word(plain, x, x + LETTER * len(plain), 0.0, 8.0, span, seam))
            x += LETTER * (len(plain) + 1)
        x += LETTER
    return words


LABELS = row("Lane  Name               Age  Team      Seed Time")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("   1  Doe, Jane          12  A|V-XY    1:02.33", "1 Doe, Jane 12 AV-XY 1:02.33"),
        ("   1  Featherstone, Rosa Æ|16  EELS    28.11", "1 Featherstone, Rosa Æ 16 EELS 28.11"),
        ("   1  Featherstones, Rosa M|16  EELS   28.11", "1 Featherstones, Rosa M 16 EELS 28.11"),
        ("   1  Doe, Jane         W|12  EELS     28.11", "1 Doe, Jane W12 EELS 28.11"),
        ("   1  Doe, Jane          1|2  EELS     28.11", "1 Doe, Jane 12 EELS 28.11"),
        ("   1  Doe, Jane          12|ABC        28.11", "1 Doe, Jane 12 ABC 28.11"),
        ("   1  Doe, Jane          12  Fjord Sw|NT", "1 Doe, Jane 12 Fjord Sw NT"),
        ("   1  Doe, Jane          12  Swim-NT1:02.33", "1 Doe, Jane 12 Swim-NT 1:02.33"),
        ("   1  Doe, Jane          12  OSW|23    28.11", "1 Doe, Jane 12 OSW23 28.11"),
        ("   1  Featherstone, RosaW16  EELS      28.11", "1 Featherstone, Rosa W16 EELS 28.11"),
        ("   1  Doe, Jane              H2O       28.11", "1 Doe, Jane H2O 28.11"),
    ],
)
def test_fields_below_labels_are_split(text: str, expected: str):
    (header,) = find_table_headers(LABELS)
    assert " ".join(word.text for word in split_fields(row(text), header)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3) Doe, Jane 14|4) Roe, Ann 13", "3) Doe, Jane 14 4) Roe, Ann 13"),
        ("Van Der Linde, Bo 44|Evans, Al 43", "Van Der Linde, Bo 44 Evans, Al 43"),
        ("1 Doe, Jane 12 OSW23 28.11", "1 Doe, Jane 12 OSW23 28.11"),
    ],
)
def test_fields_without_labels_are_split(text: str, expected: str):
    assert " ".join(word.text for word in split_fields(row(text), None)) == expected
