"""A log of starts and ends, written by triggers, that shows whether a limit was ever exceeded.

It does not rely on the engine's counters or on client clocks. A start counts from the moment it is
executed, even before its commit. An end counts only when the transaction of the next start sees it.
If limits are exact, no start exceeds a limit under these strict rules. For a slot of a provider,
`fence` is the negative ticket.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import psycopg

LEDGER = """
create table public.ledger (
    number bigint generated always as identity primary key,
    fence bigint not null,
    name text,
    slots integer,
    xid bigint not null default pg_current_xact_id()::text::bigint,
    snapshot text not null default pg_current_snapshot()::text
);

create function public.keep_ledger() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' and new.state = 'running' and old.state <> 'running' then
        insert into public.ledger (fence, name, slots)
        select new.fence, m.name, m.slots
        from batchmill.limit_names(new.task, new.tenant, new.batch_id, new.key) n
        join batchmill.limits m on m.name = n.name where m.slots is not null
        union all
        select new.fence, 'lane:' || l.id, l.slots
        from batchmill.lanes l where l.id = new.lane_id and l.slots is not null;
    elsif old.state = 'running' and (tg_op = 'DELETE' or new.state <> 'running') then
        insert into public.ledger (fence) values (old.fence);
    end if;
    return null;
end $$;

create function public.keep_holds() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        insert into public.ledger (fence) select -old.ticket where old.granted_at is not null;
    elsif old.granted_at is null then
        insert into public.ledger (fence, name, slots)
        select -new.ticket, p.name, p.slots from batchmill.providers p
        where p.id = new.provider_id and p.slots is not null;
    end if;
    return null;
end $$;

create trigger keep_holds after update or delete on batchmill.holds
for each row execute function public.keep_holds();

create trigger keep_ledger after update or delete on batchmill.jobs
for each row execute function public.keep_ledger();
"""


class Entry(NamedTuple):
    """A start under the limit `name`, or an end if there is no name."""

    fence: int
    name: str | None
    slots: int
    xid: int
    snapshot: str


def open_ledger(conn: psycopg.Connection[Any]) -> None:
    conn.execute(LEDGER)


def exceeded(conn: psycopg.Connection[Any]) -> list[str]:
    query = "select fence, name, slots, xid, snapshot from public.ledger order by number"
    return excesses(Entry(*row) for row in conn.execute(query).fetchall())


def excesses(entries: Iterable[Entry]) -> list[str]:
    entries = list(entries)
    ended_by = {entry.fence: entry.xid for entry in entries if entry.name is None}
    running: defaultdict[str, list[int]] = defaultdict(list)
    exceeding: list[str] = []
    for entry in entries:
        if entry.name is None:
            continue
        saw = Snapshot(entry)
        # An attempt whose end this start sees no longer counts.
        running[entry.name] = [
            fence for fence in running[entry.name] if not saw.sees(ended_by.get(fence))
        ]
        running[entry.name].append(entry.fence)
        if len(running[entry.name]) > entry.slots:
            exceeding.append(f"{entry.name}: {running[entry.name]} at once, limit {entry.slots}")
    return exceeding


class Snapshot:
    def __init__(self, entry: Entry):
        first, end, under_way = entry.snapshot.split(":")
        self._own = entry.xid
        self._first, self._end = int(first), int(end)
        self._under_way = set(map(int, under_way.split(","))) if under_way else set()

    def sees(self, xid: int | None) -> bool:
        if xid is None:
            return False
        if xid == self._own or xid < self._first:
            return True
        return xid < self._end and xid not in self._under_way
