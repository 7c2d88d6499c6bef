"""The demo of the terminal, from its start to its end."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from apps.resumes.options import TEMPLATES
from apps.resumes.samples import SAMPLES
from apps.resumes.tables import RESUMES
from batchmill import Mill

ROOT = Path(__file__).parents[3]


async def test_the_demo_exports_every_sample_in_every_design(dsn: str, tmp_path: Path) -> None:
    async with Mill(dsn, migrate=True, schemas=[RESUMES]):
        pass
    environment = {"DATABASE_URL": dsn, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "apps.resumes.demo"],
        cwd=tmp_path,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    made = {file.name: file.read_bytes() for file in (tmp_path / ".try/resumes").iterdir()}
    names = {f"{sample}-{template}.pdf" for sample in SAMPLES for template in TEMPLATES}
    assert made.keys() == names
    assert all(pdf.startswith(b"%PDF-") for pdf in made.values())
    assert all(name in ended.stdout for name in names)
    assert "25 of 25 ended, 0 failed" in ended.stdout
