"""Letters become words, and stretches of words, by how and where they were drawn."""

from collections.abc import Iterator

from apps.heatsync.reader.words import Letter, Word, words_of

WIDE, SIZE = 4.0, 8.0


def stretch(text: str, x: float, drawing: int, *, step: float = WIDE) -> Iterator[Letter]:
    for at, letter in enumerate(text):
        x0 = x + at * step
        yield Letter(letter, x0, x0 + WIDE, 100.0, SIZE, drawing, is_apart=False)


def read(*stretches: Iterator[Letter]) -> list[Word]:
    return list(words_of(letter for letters in stretches for letter in letters))


def texts(words: list[Word]) -> list[tuple[str, int]]:
    return [(word.text, word.span) for word in words]


def test_a_space_is_between_words_of_one_stretch():
    assert texts(read(stretch("Doe, Jane A", 0, 1))) == [("Doe,", 1), ("Jane", 1), ("A", 1)]


def test_a_stretch_may_run_over_another():
    assert texts(read(stretch("Featherstone", 0, 1), stretch("12", 40, 2))) == [
        ("Featherstone", 1),
        ("12", 2),
    ]


def test_a_line_that_is_drawn_at_once_has_a_stretch_for_each_field():
    """The name, then far back to the lane, then on to the time."""
    line = (stretch("Jane", 40, 1), stretch("4", 20, 1), stretch("28.11", 90, 1))
    assert texts(read(*line)) == [("Jane", 1), ("4", 2), ("28.11", 3)]


def test_pieces_that_meet_are_a_word_with_a_seam():
    (word,) = read(stretch("A", 0, 1), stretch("V-XY", 4, 2))
    assert (word.text, word.span, word.seam) == ("AV-XY", 1, 1)


def test_letters_may_be_set_apart():
    assert texts(read(stretch("EVENT", 0, 1, step=7))) == [("EVENT", 1)]


def test_an_accent_stands_over_its_letter():
    (word,) = read(stretch("Zun", 0, 1), stretch("ñ", 9, 1), stretch("iga", 12, 1))
    assert word.text == "Zuñiga"
    (word,) = read(stretch("Jose", 0, 1), stretch("\u0301", 13, 2))
    assert word.text == "José"


def test_letters_that_a_font_misnames_are_read_as_they_look():
    assert texts(read(stretch("Griﬃn Paciϐic \x02 \ud800", 0, 1)))[:3] == [
        ("Griffin", 1),
        ("Pacific", 1),
        ("-", 1),
    ]
