"""Opening a mill: DSNs that are malformed, unreachable, or name several hosts."""

import traceback

import pytest
from psycopg.conninfo import make_conninfo

from batchmill import ConfigurationError, DatabaseUnavailable, Mill

MALFORMED = [
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


@pytest.mark.parametrize("dsn", MALFORMED)
async def test_a_malformed_dsn_raises_a_configuration_error_without_the_password(dsn: str) -> None:
    with pytest.raises(ConfigurationError, match="database URL is not valid") as error:
        await Mill(dsn).open()
    assert "hid" not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize("dsn", ["postgresql://me:hidden@127.0.0.1:1/name", "host=/nowhere port=1"])
async def test_an_unreachable_server_raises_database_unavailable_without_the_password(
    dsn: str,
) -> None:
    with pytest.raises(DatabaseUnavailable) as error:
        await Mill(dsn).open()
    assert "hid" not in str(error.value)


async def test_a_dsn_may_name_several_hosts(dsn: str) -> None:
    host, port = dsn.split("@")[-1].split("/")[0].split(":")
    async with Mill(dsn.replace(f"{host}:{port}", f"127.0.0.1:1,{host}:{port}")) as mill:
        assert await mill.limits.all() == []


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_a_database_with_another_isolation_level_is_refused(dsn: str, level: str) -> None:
    options = f"-cdefault_transaction_isolation={level}".replace(" ", "\\ ")
    with pytest.raises(ConfigurationError, match=f"default of this database or user is {level}"):
        async with Mill(make_conninfo(dsn, options=options)):
            pass
