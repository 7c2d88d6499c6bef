"""Every operation of the service, read from its OpenAPI description so that none is missing."""

from dataclasses import dataclass
from typing import Any

from batchmill.config import ServiceSettings
from batchmill.mill import Mill
from batchmill.service import create_app

DESCRIPTION: dict[str, Any] = create_app(
    Mill("postgresql://nobody@127.0.0.1:1/none"), settings=ServiceSettings()
).openapi()

# Valid bodies.
BODIES: dict[str, Any] = {
    "/v1/batches": {"task": "double", "items": [1]},
    "/v1/batches/{id}/notifications": {"targets": ["ada@example.com"]},
    "/v1/webhooks": {"url": "https://example.com/hook"},
    "/v1/limits/{name}": {"slots": 3},
    "/v1/tasks/{name}/priority": {"priority": 1},
    "/v1/worker/run": {"seconds": 1},
    "/v1/schedules/{name}": {"cron": "0 3 * * *", "task": "double", "payload": 1},
}
# A valid request would get a stream that does not end.
ENDLESS = "/v1/events"
SYSTEM = ("/healthz", "/readyz", "/v1/version")


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    about: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def scope(self) -> str:
        """The scope that a key needs for this operation."""
        if self.needs_operator:
            return "admin"
        if self.method == "GET" or self.path.endswith("/link"):
            return "read"
        return "admin" if self.path.startswith("/v1/schedules") else "submit"

    @property
    def needs_operator(self) -> bool:
        operators = ("/metrics", "/v1/limits", "/v1/pools", "/v1/statistics", "/v1/tasks/")
        return self.path.startswith((*operators, "/v1/tenants/", "/v1/worker"))

    def request(self, **names: str) -> dict[str, Any]:
        """Returns the arguments of `client.request`, with these values in the path."""
        path = self.path
        for name, value in names.items():
            path = path.replace(f"{{{name}}}", value)
        arguments: dict[str, Any] = {"method": self.method, "url": path}
        if self.path == ENDLESS:
            return arguments | {"params": {"after": "not an id"}}
        if self.path == "/v1/artifacts":
            return arguments | {"params": {"name": "a.txt"}, "content": b"text"}
        if self.method in ("POST", "PUT") and self.path in BODIES:
            arguments["json"] = BODIES[self.path]
        return arguments


OPERATIONS = [
    Operation(method.upper(), path, about)
    for path, methods in DESCRIPTION["paths"].items()
    for method, about in methods.items()
]
GUARDED = [each for each in OPERATIONS if each.path not in SYSTEM]
