"""The application's own table: the runs, and what was asked for."""

from importlib.resources import files

from batchmill import Schema

SITES = Schema("sites", files("apps.sites") / "sql")
