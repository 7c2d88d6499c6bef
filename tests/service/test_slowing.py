"""How often an address may try."""

from batchmill.service.slowing import Slowing


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_an_address_has_so_many_tries_and_they_come_back_one_by_one() -> None:
    clock = Clock()
    slowing = Slowing(tries=3, seconds=30, clock=clock)
    assert [slowing.allow("10.0.0.1") for _ in range(3)] == [None] * 3
    assert slowing.allow("10.0.0.1") == slowing.wait("10.0.0.1") == 10
    clock.now += 4
    assert slowing.wait("10.0.0.1") == 6
    clock.now += 6
    assert slowing.allow("10.0.0.1") is None
    assert slowing.allow("10.0.0.1") == 10
    clock.now += 1_000
    assert [slowing.allow("10.0.0.1") is None for _ in range(4)] == [True] * 3 + [False]


def test_refused_tries_make_nobody_wait_longer() -> None:
    slowing = Slowing(tries=1, seconds=30, clock=Clock())
    slowing.allow("10.0.0.1")
    assert {slowing.allow("10.0.0.1") for _ in range(1_000)} == {30}


def test_looking_costs_nothing() -> None:
    slowing = Slowing(tries=1, seconds=30)
    assert {slowing.wait("10.0.0.1") for _ in range(1_000)} == {None}
    assert slowing.allow("10.0.0.1") is None


def test_a_try_that_is_given_back_was_none() -> None:
    clock = Clock()
    slowing = Slowing(tries=2, seconds=30, clock=clock)
    for _ in range(100):
        assert slowing.allow("10.0.0.1") is None
        slowing.give_back("10.0.0.1")
    assert [slowing.allow("10.0.0.1") for _ in range(3)] == [None, None, 15]
    slowing.give_back("10.0.0.1")
    assert [slowing.allow("10.0.0.1") for _ in range(2)] == [None, 15]
    # What comes too late gives nobody more tries than there are.
    clock.now += 1_000
    slowing.give_back("10.0.0.1")
    assert [slowing.allow("10.0.0.1") is None for _ in range(3)] == [True, True, False]


def test_others_are_not_slowed() -> None:
    slowing = Slowing(tries=1, seconds=30)
    slowing.allow("10.0.0.1")
    assert slowing.allow("10.0.0.1")
    assert slowing.allow("10.0.0.2") is None


def test_the_addresses_of_one_network_count_as_one() -> None:
    slowing = Slowing(tries=1, seconds=30)
    slowing.allow("2001:db8::1")
    assert slowing.wait("2001:db8::ffff:1")
    assert slowing.wait("2001:db8:0:1::1") is None
    slowing.allow("10.0.0.1")
    assert slowing.wait("::ffff:10.0.0.1")
    slowing.allow("")
    assert slowing.wait("")


def test_the_table_is_bounded() -> None:
    clock = Clock()
    slowing = Slowing(tries=1, seconds=30, most=100, clock=clock)
    for n in range(1_000):
        slowing.allow(f"10.0.{n // 256}.{n % 256}")
    assert len(slowing) == 100
    assert slowing.wait("10.0.3.231")
    clock.now += 30
    for n in range(200):
        clock.now += 30
        slowing.allow(f"10.1.0.{n}")
    assert len(slowing) == 1
