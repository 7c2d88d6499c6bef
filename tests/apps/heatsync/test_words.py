"""Letters are combined into words and spans, by their positions and drawing order."""

from collections.abc import Iterator

from apps.heatsync.reader.words import Letter, Word, words_of

WIDE, SIZE = 4.0, 8.0


def letters_of(text: str, x: float, drawing: int, *, step: float = WIDE) -> Iterator[Letter]:
    for at, letter in enumerate(text):
        x0 = x + at * step
        yield Letter(letter, x0, x0 + WIDE, 100.0, SIZE, drawing, is_apart=False)


def read(*runs: Iterator[Letter]) -> list[Word]:
    return list(words_of(letter for letters in runs for letter in letters))


def texts(words: list[Word]) -> list[tuple[str, int]]:
    return [(word.text, word.span) for word in words]


def test_spaces_separate_words_of_one_span():
    assert texts(read(letters_of("Doe, Jane A", 0, 1))) == [("Doe,", 1), ("Jane", 1), ("A", 1)]


def test_a_span_may_overlap_another():
    assert texts(read(letters_of("Featherstone", 0, 1), letters_of("12", 40, 2))) == [
        ("Featherstone", 1),
        ("12", 2),
    ]


def test_a_line_that_is_drawn_at_once_has_a_span_for_each_field():
    """The name is drawn first, then the lane to the left of it, then the time."""
    line = (letters_of("Jane", 40, 1), letters_of("4", 20, 1), letters_of("28.11", 90, 1))
    assert texts(read(*line)) == [("Jane", 1), ("4", 2), ("28.11", 3)]


def test_two_adjacent_drawings_form_a_word_with_a_seam():
    (word,) = read(letters_of("A", 0, 1), letters_of("V-XY", 4, 2))
    assert (word.text, word.span, word.seam) == ("AV-XY", 1, 1)


def test_letters_of_a_word_may_be_widely_spaced():
    assert texts(read(letters_of("EVENT", 0, 1, step=7))) == [("EVENT", 1)]


def test_an_accent_is_combined_with_its_letter():
    (word,) = read(letters_of("Zun", 0, 1), letters_of("ñ", 9, 1), letters_of("iga", 12, 1))
    assert word.text == "Zuñiga"
    (word,) = read(letters_of("Jose", 0, 1), letters_of("\u0301", 13, 2))
    assert word.text == "José"


def test_letters_with_a_wrong_encoding_are_corrected():
    assert texts(read(letters_of("Griﬃn Paciϐic \x02 \ud800", 0, 1)))[:3] == [
        ("Griffin", 1),
        ("Pacific", 1),
        ("-", 1),
    ]
