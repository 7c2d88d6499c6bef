"""Sends a stored file to a client: whole, in ranges, or by a redirect to an object store. Sends ZIP
files while they are created."""

from collections.abc import AsyncIterator
from uuid import UUID

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from batchmill.domain.artifact import Artifact
from batchmill.service.download import archive_headers, download_headers, etag, parse_range
from batchmill.service.links import Viewer
from batchmill.service.service import of_request
from batchmill.service.sse import Viewing


async def send_file(request: Request, viewer: Viewer, which: Artifact | UUID) -> Response:
    """The answer of a route that downloads an artifact. It honours `Range`, `If-Range` and
    `If-None-Match`, counts the download, and has the service's limits on downloads."""
    downloads, files = of_request(request).downloads, viewer.client.artifacts
    downloads.check_room(viewer.client.tenant)
    record = await files.get(which)
    headers = request.headers
    if etag(record) in headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"ETag": etag(record)})
    part = parse_range(
        headers.get("range"), record.size, etag=etag(record), if_range=headers.get("if-range")
    )
    await files.count_download(record)
    if native := await files.url_of_record(record):
        return RedirectResponse(native, 307)
    chunks = await files.open_record(record, *((part.start, part.stop) if part else ()))
    return downloads.response(
        viewer.client.tenant,
        chunks,
        headers=download_headers(record, part),
        status=206 if part else 200,
    )


def send_zip(
    request: Request, viewer: Viewing, name: str, chunks: AsyncIterator[bytes]
) -> Response:
    """The answer of a route that sends the ZIP of `artifacts.zip` or `artifacts.archive` as a file
    with this name. It has the service's limits on downloads."""
    downloads, tenant = of_request(request).downloads, viewer.client.tenant
    downloads.check_room(tenant)
    return downloads.response(tenant, chunks, headers=archive_headers(name))
