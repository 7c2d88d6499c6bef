"""Where the database is, and what a mill says if it cannot be there."""

import traceback

import pytest

from batchmill import ConfigurationError, DatabaseUnavailable, Mill

UNREADABLE = [
    "nonsense://hidden",
    "hidden",
    "postgresql+psycopg://me:hidden@host/name",
    "postgresql://me:hidden@host:port/name",
    "postgresql://me:hidden@host:70000/name",
    "postgresql://me:hid den@host/name",
    "postgresql://me:hid@den@host/name",
    "postgresql://me:hid/den@host/name",
    "postgresql://me:hid%den@host/name",
    "postgresql://me:hidden@host/name?colour=red",
    "host=localhost password=hidden port=x",
    "host=localhost password = hidden den",
    "postgresql://me:hid\0den@host/name",
]


@pytest.mark.parametrize("dsn", UNREADABLE)
async def test_an_address_that_cannot_be_read_is_a_wrong_setting(dsn: str) -> None:
    with pytest.raises(ConfigurationError, match="address of the database cannot be read") as error:
        await Mill(dsn).open()
    assert "hid" not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize("dsn", ["postgresql://me:hidden@127.0.0.1:1/name", "host=/nowhere port=1"])
async def test_an_address_where_nobody_answers_is_another_matter(dsn: str) -> None:
    with pytest.raises(DatabaseUnavailable) as error:
        await Mill(dsn).open()
    assert "hid" not in str(error.value)


async def test_several_hosts_may_be_named(dsn: str) -> None:
    host, port = dsn.split("@")[-1].split("/")[0].split(":")
    async with Mill(dsn.replace(f"{host}:{port}", f"127.0.0.1:1,{host}:{port}")) as mill:
        assert await mill.limits.all() == []
