"""Demo: exports the documents of invented persons in every design, in the terminal."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

from apps.resumes.mill import mill
from apps.resumes.models import Export, ExportResult
from apps.resumes.options import TEMPLATES, ExportOptions
from apps.resumes.samples import samples
from apps.resumes.tasks import export
from batchmill import Batch, WorkerOptions
from batchmill.cli import follow_batch, note, out, table

FOLDER = Path(".try/resumes").absolute()
PAGE = "http://127.0.0.1:8320"


async def main() -> None:
    note("Exporting sample documents in every design.")
    async with mill.running(WorkerOptions(name="demo", processes=3, grace=5)):
        batch = await mill.submit(export, list(exports()))
        await follow_batch(batch)
        await show(batch)
        await batch.delete()
    out().print(f"\nThe PDFs are in {FOLDER}")
    out().print(f"To export your own, run `make serve APP=resumes PORT=8320`: {PAGE}")


def exports() -> Iterator[Export]:
    for name, document in samples().items():
        for template in TEMPLATES:
            yield Export(
                document=json.dumps(document),
                options=ExportOptions(template=template),
                file_name=f"{name}-{template}.pdf",
            )


async def show(batch: Batch) -> None:
    """Writes the PDFs into the folder and lists them."""
    results = await batch.results()
    made = [ExportResult.model_validate(value) for value in results.values]
    for each in made:
        write(each.file.name or "", await mill.artifacts.read(each.file))
    lines = ((each.file.name, each.page_count, f"{each.file.size:,}") for each in made)
    out().print()
    out().print(table("file", "pages", "bytes", rows=lines))
    for failed in results.failed:
        assert failed.error is not None
        out().print(f"\n{failed.payload['file_name']} failed: {failed.error.message}")


def write(name: str, pdf: bytes) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / name).write_bytes(pdf)


if __name__ == "__main__":
    asyncio.run(main())
