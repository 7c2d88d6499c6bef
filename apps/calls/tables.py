"""The application's own tables: calls, their operations at providers, and their words."""

from importlib.resources import files

from batchmill import Schema

CALLS = Schema("calls", files("apps.calls") / "sql")
