"""API keys of the service."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import RenderableType

from batchmill.cli.command import add, add_listing, group
from batchmill.cli.output import moment, table, whole
from batchmill.cli.parsing import parse_duration
from batchmill.cli.session import Session
from batchmill.domain.key import KeyRecord, Scope


async def list_keys(session: Session) -> None:
    """List the keys. Their secrets are not stored."""
    async with session.mill as mill:
        found = await mill.keys.all()
    session.show(found, draw_keys)


async def create(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    tenant: Annotated[str, typer.Option(help="The tenant of the key.")] = "default",
    scope: Annotated[
        list[Scope] | None,
        typer.Option(help="What the key may do; can be repeated. Default: read and submit."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long the key is valid: 12h, 90d.")
    ] = None,
) -> None:
    """Create a key and print it. It cannot be shown again."""
    async with session.mill as mill:
        text, record = await mill.keys.create(
            name,
            tenant=tenant,
            scopes=scope or [Scope.READ, Scope.SUBMIT],
            expires_in=parse_duration(expires) if expires else None,
        )
    session.show({"key": text, **asdict(record)}, lambda _: text)


async def revoke(
    session: Session,
    id: Annotated[str, typer.Argument(metavar="ID", help="The eight characters after bm_.")],
) -> None:
    """Revoke a key: requests with it are refused."""
    async with session.mill as mill:
        record = await mill.keys.revoke(id)
    session.show(record, lambda _: f"{id} ({record.name}) is revoked.")


def draw_keys(keys: list[KeyRecord]) -> RenderableType | str:
    if not keys:
        return "There are no keys. The service accepts requests from this machine only."
    headings = ("name", "tenant", "scopes", "expires", "last used", "state")
    return table(whole("key"), *headings, rows=map(key_row, keys))


def key_row(key: KeyRecord) -> tuple[object, ...]:
    return (
        f"bm_{key.id}_…",
        key.name,
        key.tenant,
        ", ".join(key.scopes),
        moment(key.expires_at),
        moment(key.last_used_at),
        "revoked" if key.revoked_at else "",
    )


app = group("keys", "List, create and revoke API keys of the service.")
add_listing(app, list_keys)
add(app, create)
add(app, revoke)
