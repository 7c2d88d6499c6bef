from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchmill.domain.cron import GRACE, MOST_AT_ONCE, Cron, Missed, due
from batchmill.errors import InvalidCron

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]

moments = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))
crons = st.builds(
    Cron,
    st.sampled_from(
        [
            "* * * * *",
            "*/7 * * * *",
            "*/20 * * * * *",
            "30 * * * *",
            "30 2 * * *",
            "15,45 1-3 * * *",
            "* 2 * * *",
            "0 30 2 * * *",
            "0 9 * * MON-FRI",
            "0 0 29 2 *",
            "0 0 L * *",
            "59 23 31 12 *",
        ]
    ),
    st.sampled_from(ZONES),
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def firings(cron: Cron, after: datetime, count: int) -> list[str]:
    """Returns the next firings in local time, with the UTC offset."""
    local = []
    for _ in range(count):
        after = cron.next_after(after)
        local.append(after.astimezone(ZoneInfo(cron.timezone)).strftime("%d %H:%M %z"))
    return local


class TestExpressions:
    def test_the_next_firing_is_strictly_later_and_in_utc(self):
        cron = Cron("0 9 * * *", "Europe/Berlin")
        first = cron.next_after(at("2026-01-10 07:59:59.999"))
        assert first == at("2026-01-10 08:00")
        assert first.tzinfo is UTC
        assert cron.next_after(first) == at("2026-01-11 08:00")

    def test_six_fields_start_with_seconds(self):
        assert Cron("*/10 * * * * *").next_after(at("2026-01-10 07:00:01")) == at(
            "2026-01-10 07:00:10"
        )

    @pytest.mark.parametrize(
        ("expression", "complaint"),
        [
            ("61 * * * *", 'has an invalid minute: "61"'),
            ("* 24 * * *", 'has an invalid hour: "24"'),
            ("* * 32 * *", 'has an invalid day-of-month: "32"'),
            ("* * * 13 *", 'has an invalid month: "13"'),
            ("* * * * 8", 'has an invalid day-of-week: "8"'),
            ("99 * * * * *", 'has an invalid second: "99"'),
            ("*/0 * * * *", 'has an invalid minute: "*/0"'),
            (f"{'9' * 5000} * * * *", "has an invalid minute"),
            ("* * * *", "has 4 fields. It needs five"),
            ("", "has 0 fields. It needs five"),
            ("0 0 30 2 *", "never fires"),
            ("0 0 31 4,6 *", "never fires"),
            ("0 0 */31 2 1#5", "never fires"),
        ],
    )
    def test_an_invalid_expression_is_refused_with_its_invalid_part(
        self, expression: str, complaint: str
    ):
        with pytest.raises(InvalidCron) as refused:
            Cron(expression)
        assert complaint in str(refused.value)

    @pytest.mark.parametrize(
        "name", ["Mars/Olympus", "", "../etc/passwd", "Europe", "\0", "\ud800"]
    )
    def test_an_unknown_time_zone_is_refused(self, name: str):
        with pytest.raises(InvalidCron, match="There is no time zone"):
            Cron("* * * * *", name)

    @given(st.text("0123456789*/,-#LWMONFEB \x00é", max_size=30))
    def test_any_text_is_accepted_or_refused_with_invalid_cron(self, expression: str):
        try:
            Cron(expression)
        except InvalidCron as refused:
            assert expression in str(refused)


class TestClockChanges:
    def test_a_fixed_time_that_spring_skips_fires_right_after_the_gap(self):
        berlin = Cron("30 2 * * *", "Europe/Berlin")
        assert firings(berlin, at("2026-03-27 12:00"), 3) == [
            "28 02:30 +0100",
            "29 03:00 +0200",
            "30 02:30 +0200",
        ]
        new_york = Cron("30 2 * * *", "America/New_York")
        assert firings(new_york, at("2026-03-07 12:00"), 2) == ["08 03:00 -0400", "09 02:30 -0400"]
        lord_howe = Cron("15 2 * * *", "Australia/Lord_Howe")
        assert firings(lord_howe, at("2026-10-03 12:00"), 2) == ["04 02:30 +1100", "05 02:15 +1100"]

    def test_a_fixed_time_that_autumn_repeats_fires_once(self):
        berlin = Cron("30 2 * * *", "Europe/Berlin")
        assert firings(berlin, at("2026-10-24 12:00"), 2) == ["25 02:30 +0200", "26 02:30 +0100"]
        new_york = Cron("30 1 * * *", "America/New_York")
        assert firings(new_york, at("2026-11-01 00:00"), 2) == ["01 01:30 -0400", "02 01:30 -0500"]
        lord_howe = Cron("45 1 * * *", "Australia/Lord_Howe")
        assert firings(lord_howe, at("2026-04-04 12:00"), 2) == ["05 01:45 +1100", "06 01:45 +1030"]

    def test_a_fixed_time_does_not_fire_when_autumn_repeats_the_hour(self):
        second_pass = at("2026-10-25 01:10")
        assert firings(Cron("30 2 * * *", "Europe/Berlin"), second_pass, 1) == ["26 02:30 +0100"]

    def test_a_repeating_expression_follows_the_wall_clock(self):
        half_hourly = Cron("*/30 * * * *", "Europe/Berlin")
        assert firings(half_hourly, at("2026-03-29 00:15"), 3) == [
            "29 01:30 +0100",
            "29 03:00 +0200",
            "29 03:30 +0200",
        ]
        assert firings(half_hourly, at("2026-10-25 00:15"), 4) == [
            "25 02:30 +0200",
            "25 02:00 +0100",
            "25 02:30 +0100",
            "25 03:00 +0100",
        ]

    def test_a_repeating_expression_continues_after_a_change_of_half_an_hour(self):
        quarterly = Cron("*/15 * * * *", "Australia/Lord_Howe")
        assert firings(quarterly, at("2026-10-03 15:20"), 3) == [
            "04 02:30 +1100",
            "04 02:45 +1100",
            "04 03:00 +1100",
        ]

    @settings(max_examples=300)
    @given(crons, moments)
    def test_firings_are_aware_and_strictly_increase(self, cron: Cron, moment: datetime):
        times = [moment]
        for _ in range(5):
            times.append(cron.next_after(times[-1]))
        assert all(time.utcoffset() == timedelta(0) for time in times)
        assert all(earlier < later for earlier, later in pairwise(times))


class TestMissed:
    hourly = Cron("0 * * * *")
    next_at = at("2026-01-10 08:00")

    @pytest.mark.parametrize("missed", Missed)
    def test_nothing_is_due_before_its_time(self, missed: Missed):
        assert due(self.hourly, self.next_at, at("2026-01-10 07:59:59"), missed) == (
            [],
            self.next_at,
        )

    @pytest.mark.parametrize("missed", Missed)
    @pytest.mark.parametrize("late", [0, 5, 59])
    def test_a_firing_that_is_seconds_late_is_not_missed(self, missed: Missed, late: int):
        now = self.next_at + timedelta(seconds=late)
        assert due(self.hourly, self.next_at, now, missed) == (
            [self.next_at],
            at("2026-01-10 09:00"),
        )

    def test_once_fires_one_time_for_all_missed_firings(self):
        assert due(self.hourly, self.next_at, at("2026-01-12 10:30"), Missed.ONCE) == (
            [self.next_at],
            at("2026-01-12 11:00"),
        )

    def test_once_ignores_missed_firings_if_one_is_due_now(self):
        assert due(self.hourly, self.next_at, at("2026-01-12 10:00:03"), Missed.ONCE) == (
            [at("2026-01-12 10:00")],
            at("2026-01-12 11:00"),
        )

    def test_skip_continues_with_the_next_firing(self):
        assert due(self.hourly, self.next_at, at("2026-01-10 10:30"), Missed.SKIP) == (
            [],
            at("2026-01-10 11:00"),
        )

    def test_all_fires_every_missed_firing(self):
        assert due(self.hourly, self.next_at, at("2026-01-10 10:30"), Missed.ALL) == (
            [at("2026-01-10 08:00"), at("2026-01-10 09:00"), at("2026-01-10 10:00")],
            at("2026-01-10 11:00"),
        )

    def test_all_catches_up_a_hundred_at_a_time(self):
        now = self.next_at + timedelta(hours=149)
        first, next_at = due(self.hourly, self.next_at, now, Missed.ALL)
        assert len(first) == MOST_AT_ONCE
        assert next_at == self.next_at + timedelta(hours=100)
        rest, next_at = due(self.hourly, next_at, now, Missed.ALL)
        assert len(rest) == 50
        assert next_at > now

    def test_firings_between_two_checks_are_all_on_time(self):
        every_second = Cron("* * * * * *")
        fired, _ = due(every_second, self.next_at, self.next_at + timedelta(seconds=4))
        assert len(fired) == 5

    def test_years_of_missed_seconds_fire_at_most_a_hundred_times(self):
        every_second = Cron("* * * * * *")
        now = at("2036-01-10 08:00")
        for missed in Missed:
            fired, _ = due(every_second, self.next_at, now, missed)
            assert len(fired) <= MOST_AT_ONCE

    @given(
        crons,
        moments,
        st.sampled_from(Missed),
        st.lists(st.timedeltas(timedelta(0), timedelta(days=3)), max_size=6),
    )
    def test_no_time_fires_twice_and_none_fires_early(
        self, cron: Cron, start: datetime, missed: Missed, steps: list[timedelta]
    ):
        now, next_at, fired = start, cron.next_after(start), []
        for step in steps:
            now += step
            times, next_at = due(cron, next_at, now, missed)
            assert all(time <= now for time in times)
            fired += times
        assert all(earlier < later for earlier, later in pairwise([start, *fired, next_at]))

    @given(crons, moments, st.timedeltas(timedelta(0), timedelta(days=400)))
    def test_skip_fires_nothing_older_than_the_grace_period(
        self, cron: Cron, start: datetime, away: timedelta
    ):
        now = start + away
        fired, next_at = due(cron, cron.next_after(start), now, Missed.SKIP)
        assert all(now - GRACE < time for time in fired)
        assert next_at > now


@pytest.mark.parametrize(
    ("expression", "seconds"),
    [
        ("* * * * *", 60),
        ("* * * * * *", 1),
        ("*/20 * * * * *", 20),
        ("0 3 * * *", 86_400),
        ("0,59 * * * *", 60),
        ("0 0 1 1 *", 86_400),
        # A burst once a year, and one around midnight.
        ("0,2 0 0 1 1 *", 2),
        ("0,59 0,59 0,23 * * *", 1),
        ("30 0 12 * * *", 86_400),
    ],
)
def test_the_shortest_interval_includes_bursts(expression: str, seconds: float) -> None:
    assert Cron(expression).shortest_interval == seconds


@given(cron=crons, moment=moments)
@settings(max_examples=50)
def test_no_two_firings_come_closer_than_the_shortest_interval(
    cron: Cron, moment: datetime
) -> None:
    cron = Cron(cron.expression)
    firings = [moment]
    for _ in range(20):
        firings.append(cron.next_after(firings[-1]))
    gaps = [(after - before).total_seconds() for before, after in pairwise(firings[1:])]
    assert min(gaps) >= cron.shortest_interval
