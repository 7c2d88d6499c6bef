"""The application's own tables: documents, their exports, and which exports belong together."""

from importlib.resources import files

from batchmill import Schema

RESUMES = Schema("resumes", files("apps.resumes") / "sql")
