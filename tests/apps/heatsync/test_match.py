"""Names match exactly or not at all, in any spelling."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from apps.heatsync.reader import (
    AmbiguousSwimmer,
    Swim,
    SwimmerNotFound,
    find_swims,
    is_same_name,
    normalised,
)


def swim(name: str | None, *, age: int | None = 12, team: str = "ABC", event: int = 1) -> Swim:
    return Swim(
        event_number=str(event),
        event_name="Girls 50 Free",
        swimmer_name=name,
        age=age,
        team=team,
        relay=name is None,
    )


@pytest.mark.parametrize(
    ("printed", "asked"),
    [
        ("Doe, Jane", "Doe, Jane"),
        ("Doe, Jane", "Jane Doe"),
        ("Doe, Jane", "Doe Jane"),
        ("Doe, Jane", "  JANE   doe "),
        ("Jane Doe", "Doe, Jane"),
        ("Jane Doe", "jane doe"),
        ("VOX Milena", "Milena Vox"),
        ("VOX Milena", "Vox, Milena"),
        ("Doe, Jane A", "Jane Doe"),
        ("Doe, Jane (S9)", "Jane Doe"),
        ("Doe, Jane A S10/SB9/SM10", "Jane Doe"),
        ("Doe, Jane", "Jane A. Doe"),
        ("Doe, Jane A", "Jane A Doe"),
        ("Doe, Anne-Marie", "Anne Marie Doe"),
        ("Doe, Annemarie", "Anne-Marie Doe"),
        ("Roe-Poe, Ann", "Ann Roe Poe"),
        ("O'Dea, Zoë", "Zoe ODea"),
        ("O’Dea, Zoe", "zoé o'dea"),
        ("Müller, Søren", "Soren Muller"),
        ("Núñez, Ángel", "angel nunez"),
        ("Groß, Łukasz", "Lukasz Gross"),
        ("Griﬃn, Fiona", "Fiona Griffin"),
        ("Van Der Linde, Flora", "Flora van der Linde"),
        ("Lucia Sandoval Guerrero", "Sandoval Guerrero, Lucia"),
        ("Doe Jr., John", "John Doe"),
        ("Doe, John Jr", "John Doe Jr."),
        ("Doe Jr., John", "Doe, John Jr"),
        ("Van Der Linde, Flora", "Van der Linde"),
        ("Lucia Sandoval Guerrero", "Guerrero"),
        ("Doe, Jane", "doe"),
        ("Zico (Bob)", "Zico (Bob)"),
    ],
)
def test_these_names_match(printed: str, asked: str):
    found = [swim(printed), swim(printed, event=2)]
    others = [swim("Other, Olga"), swim("Stein, Al"), swim(None)]
    assert find_swims([*found, *others], asked) == found


@pytest.mark.parametrize(
    ("printed", "asked"),
    [
        ("Doe, Jane", "Jan Doe"),
        ("Doe, Jane", "Jane Does"),
        ("Doe, Jane", "Jane"),
        ("Steinman, Rolf", "Stein"),
        ("Goldstein, Abel", "Stein"),
        ("Lee, Anne", "Ann Elee"),
        ("Doe, Jane A", "Jane B Doe"),
        ("Doe, Jane Alice", "Jane Doe"),
        ("Doe Jr., John", "John Doe III"),
        ("Doe, Jane", ""),
        ("Doe, Jane", ","),
        ("Doe, Jane", "12"),
    ],
)
def test_these_names_do_not_match(printed: str, asked: str):
    with pytest.raises(SwimmerNotFound) as caught:
        find_swims([swim(printed)], asked)
    assert not isinstance(caught.value, AmbiguousSwimmer)
    assert caught.value.error_code == "SWIMMER_NOT_FOUND"


def test_similar_names_are_suggested_but_do_not_match():
    swims = [swim("Doe, Jane"), swim("Doe, Jane", event=2), swim("Smith, Al")]
    with pytest.raises(SwimmerNotFound) as caught:
        find_swims(swims, "Jane Dow")
    assert caught.value.suggestions == ["Doe, Jane"]
    assert str(caught.value) == '"Jane Dow" is not on this sheet. Did you mean Doe, Jane?'


def test_a_name_of_several_swimmers_raises_an_error_that_lists_them():
    swims = [swim("Doe, Jane"), swim("Doe, John", age=14, team="XYZ"), swim("Doe, Jane", event=2)]
    with pytest.raises(AmbiguousSwimmer) as caught:
        find_swims(swims, "Doe")
    assert caught.value.candidates == ["Doe, Jane (12, ABC)", "Doe, John (14, XYZ)"]
    assert caught.value.error_code == "AMBIGUOUS_SWIMMER"
    assert str(caught.value).endswith('Enter the full name: "Doe, Jane".')


def test_the_team_selects_one_of_two_swimmers_with_the_same_name():
    swims = [swim("Lee, Ann", team="BLUE"), swim("Lee, Ann", age=9, team="H2O (Fra)")]
    with pytest.raises(AmbiguousSwimmer) as caught:
        find_swims(swims, "Lee, Ann")
    assert str(caught.value) == (
        '"Lee, Ann" matches 2 swimmers: Lee, Ann (12, BLUE) or Lee, Ann (9, H2O (Fra)). '
        'Enter the name and team: "Lee, Ann (BLUE)".'
    )
    for asked in ("Lee, Ann (BLUE)", "ann lee (Blue)", "Lee (BLUE)", caught.value.candidates[0]):
        assert find_swims(swims, asked) == swims[:1]
    for asked in ("Lee, Ann (H2O (Fra))", " Ann Lee (h2o (fra)) ", caught.value.candidates[1]):
        assert find_swims(swims, asked) == swims[1:]


@pytest.mark.parametrize("team", ["GOLD", "H2O", "BLU", "", "("])
def test_a_swimmer_of_another_team_does_not_match(team: str):
    with pytest.raises(SwimmerNotFound) as caught:
        find_swims([swim("Lee, Ann", team="BLUE")], f"Lee, Ann ({team})")
    assert caught.value.suggestions == ["Lee, Ann"]


def test_the_age_selects_one_of_two_swimmers_with_the_same_name_and_team():
    swims = [swim("Doe, Jane", age=8), swim("Doe, Jane", age=13)]
    with pytest.raises(
        AmbiguousSwimmer, match=r'Enter the name, age and team: "Doe, Jane \(8, ABC\)"\.'
    ):
        find_swims(swims, "Jane Doe")
    assert find_swims(swims, "Jane Doe (13)") == swims[1:]


@pytest.mark.parametrize(
    "asked", ["Smith, Robert (Bob)", "Robert Smith (Bob)", "Robert (Bob) Smith", "Smith (ABC)"]
)
def test_brackets_may_be_part_of_a_name(asked: str):
    swims = [swim("Smith, Robert (Bob)"), swim("Smith, Robert", team="Bob")]
    assert find_swims(swims, asked) == swims[:1]
    assert find_swims(swims, "Smith, Robert (Bob) (ABC)") == swims[:1]


def test_a_relay_may_leave_out_the_initial_and_the_age():
    swims = [swim("Doe, Jane A"), swim("Doe, Jane", age=None, event=2)]
    assert find_swims(swims, "Jane Doe") == swims


def test_an_exact_match_is_preferred():
    swims = [swim("Doe, Jane", team="XYZ"), swim("Doe, Jane A"), swim("Doe Jr., Jane", age=9)]
    assert find_swims(swims, "Jane Doe") == swims[:1]
    assert find_swims(swims, "Jane A Doe") == swims[1:2]


def test_the_order_of_names_counts_if_both_orders_exist():
    swims = [swim("James Thomas"), swim("Thomas James", age=14)]
    assert find_swims(swims, "Thomas James") == swims[1:]


@pytest.mark.parametrize("name", ["Doe, Zoë", "zoe doe", "ZOË  DOE", "Doe, Zoe", "Zoë Doe"])
def test_spellings_of_one_name_are_equal(name: str) -> None:
    assert normalised(name) == "zoe doe"
    assert is_same_name(name, "Zoë Doe")


WORDS = st.lists(st.sampled_from(["Ann", "Lee", "Zoë", "A", "B", "Jr", "Ann-Lee"]), max_size=3)
NICKNAMES = st.sampled_from(["", " (Bob)", " (Al)", " (S9)"])


@st.composite
def names(draw: st.DrawFn) -> str:
    words = " ".join([draw(st.sampled_from(["Ann", "Lee"])), *draw(WORDS)])
    return f"{words}{draw(st.sampled_from([',', ' ']))} {' '.join(draw(WORDS))}{draw(NICKNAMES)}"


@given(names(), names())
def test_different_names_are_normalised_to_different_texts(some: str, other: str):
    # Names with only one word are not compared.
    assume(" " in normalised(some).strip() and " " in normalised(other).strip())
    assert is_same_name(some, other) or normalised(some) != normalised(other)


@given(WORDS.filter(bool), st.sampled_from(["Lee", "Núñez", "O'Dea"]), NICKNAMES)
def test_order_and_case_do_not_change_the_normalised_name(
    words: list[str], family: str, nickname: str
):
    first = " ".join(words)
    some, other = f"{family}, {first}{nickname}", f"{first} {family}{nickname}"
    assert normalised(some) == normalised(other) == normalised(other.upper())
    assert is_same_name(some, other)


@pytest.mark.parametrize(
    ("some", "other"),
    [
        ("Ann Lee, Mary", "Lee, Mary Ann"),
        ("Ann Lee, Mary", "Mary Ann Lee"),
        (", Mary Lee", "Mary Lee"),
        ("Lee, Ann (BLUE)", "Lee, Ann (REDS)"),
        ("Lee, Ann (BLUE)", "Lee, Ann"),
    ],
)
def test_these_names_are_normalised_to_different_texts(some: str, other: str):
    assert normalised(some) != normalised(other)


@pytest.mark.parametrize("name", ["Doe", "Zoé Roe", "Zo Doe", "Doe, Zoey", ""])
def test_different_names_are_not_equal(name: str) -> None:
    assert not is_same_name(name, "Zoë Doe")
