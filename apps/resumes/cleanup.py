"""How exports end: they expire or are deleted, and are forgotten some time later.

An export is closed first, in one transaction that keeps in its row what its batch has. From then on
it can be neither downloaded nor reused. Then its file and its batch are deleted. A process that
dies in between leaves a closed export with a batch, which the next cleanup finds.
"""

from contextlib import suppress
from uuid import UUID

from apps.resumes import documents
from apps.resumes.settings import KEPT, REMEMBERED
from apps.resumes.tables import RESUMES
from batchmill import Client, Conflict, NotFound

PAGE = 100


async def clean_up(client: Client) -> int:
    """Deletes the expired exports that the client sees, and returns their number. Also ends what
    was interrupted."""
    deleted = 0
    while await close_expired(client):
        deleted += await release_closed(client)
    deleted += await release_closed(client)
    for document in await RESUMES.rows(client, "interrupted_deletions"):
        await documents.end_deletion(client, document["id"])
    await RESUMES.rows(client, "forget_exports", remembered=REMEMBERED)
    await RESUMES.rows(client, "forget_batches")
    return deleted


async def close_expired(client: Client) -> int:
    async with client.transaction() as conn:
        held = await RESUMES.rows(conn, "hold_expired", kept=KEPT, most=PAGE)
        ids = [row["id"] for row in held]
        closed = await RESUMES.rows(conn, "close_exports", ids=ids, kept=KEPT, is_deleted=False)
    return len(closed)


async def release_closed(client: Client) -> int:
    """Deletes the files and batches of closed exports."""
    deleted, after = 0, UUID(int=0)
    while closed := await RESUMES.rows(client, "closed_exports", after=after, most=PAGE):
        for row in closed:
            deleted += await release(client, row["id"])
        after = closed[-1]["id"]
    return deleted


async def release(client: Client, id: UUID) -> bool:
    """Deletes the file and the batch of a closed export. The file goes first, because deleting it
    frees the quota at once. Returns whether this call has deleted the batch."""
    async for file in client.artifacts.of_batch(id):
        # Another process may release the export too, or a batch of the user may need the file.
        with suppress(NotFound, Conflict):
            await client.artifacts.delete(file)
    try:
        await client.batch(id).delete()
    except (NotFound, Conflict):
        return False
    return True
