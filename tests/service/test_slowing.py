"""The number of tries of an address is limited."""

from batchmill.service.slowing import Slowing


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_tries_of_an_address_are_limited_and_refilled_one_by_one() -> None:
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


def test_refused_tries_do_not_extend_the_wait() -> None:
    slowing = Slowing(tries=1, seconds=30, clock=Clock())
    slowing.allow("10.0.0.1")
    assert {slowing.allow("10.0.0.1") for _ in range(1_000)} == {30}


def test_reading_the_wait_does_not_count_as_a_try() -> None:
    slowing = Slowing(tries=1, seconds=30)
    assert {slowing.wait("10.0.0.1") for _ in range(1_000)} == {None}
    assert slowing.allow("10.0.0.1") is None


def test_a_try_that_is_given_back_does_not_count() -> None:
    clock = Clock()
    slowing = Slowing(tries=2, seconds=30, clock=clock)
    for _ in range(100):
        assert slowing.allow("10.0.0.1") is None
        slowing.give_back("10.0.0.1")
    assert [slowing.allow("10.0.0.1") for _ in range(3)] == [None, None, 15]
    slowing.give_back("10.0.0.1")
    assert [slowing.allow("10.0.0.1") for _ in range(2)] == [None, 15]
    # A try that is given back late does not raise the number of tries above the limit.
    clock.now += 1_000
    slowing.give_back("10.0.0.1")
    assert [slowing.allow("10.0.0.1") is None for _ in range(3)] == [True, True, False]


def test_other_addresses_are_not_limited() -> None:
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


def test_the_number_of_remembered_addresses_is_limited() -> None:
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
