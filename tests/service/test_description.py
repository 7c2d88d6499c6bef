"""The answers of the service conform to its OpenAPI description, for any call."""

from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from playwright.async_api import Page, expect
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service.operations import ENDLESS, OPERATIONS, Operation
from tests.service.tools import SharedService

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
BOUNDED = settings(
    max_examples=15,
    # The same calls every time.
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)


async def test_the_docs_page_loads_files_of_this_server_only(
    service: SharedService, page: Page
) -> None:
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    await page.goto(f"{service.url}/docs")
    await expect(page.get_by_text("/v1/batches/{id}/results").first).to_be_visible()
    assert all(url.startswith((service.url, "data:")) for url in urls), urls


@dataclass(frozen=True)
class Described:
    """The OpenAPI description, and existing resources by the first part of their paths."""

    schema: Any
    headers: dict[str, str]
    resources: dict[str, Any]

    def aim(self, case: Any, operation: Operation) -> None:
        """Replaces ids with existing ones, so that not every call ends with 404."""
        kind = operation.path.removeprefix("/v1/").partition("/")[0]
        for name in ("id", "name"):
            if kind in self.resources and name in (case.path_parameters or {}):
                case.path_parameters[name] = self.resources[kind]
        if isinstance(case.body, dict) and "task" in case.body:
            case.body["task"] = "keep"


@pytest.fixture(scope="session")
def described(service: SharedService) -> Described:
    headers = {"Authorization": f"Bearer {service.key('default')}"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=60) as client:
        body = {"task": "keep", "items": [1, {"a": None}]}
        batch = client.post("/v1/batches", json=body).json()
        client.get(batch["links"]["events"])
        jobs = client.get(batch["links"]["jobs"]).json()["jobs"]
        file = client.put("/v1/artifacts?name=a", content=b"text").json()
    resources = {
        "batches": batch["id"],
        "jobs": jobs[0]["id"],
        "artifacts": file["id"],
        "limits": "tenant:described",
        "tasks": "shout",
    }
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    return Described(schema, headers, resources)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_every_answer_is_described(operation: Operation, described: Described) -> None:
    called = described.schema[operation.path][operation.method]
    modes = [called.as_strategy(generation_mode=GenerationMode.POSITIVE)]
    if called.body or any(called.iter_parameters()):
        modes.append(called.as_strategy(generation_mode=GenerationMode.NEGATIVE))

    @BOUNDED
    @given(st.one_of(modes), st.booleans())
    def calls(case: Any, is_aimed: bool) -> None:
        if is_aimed:
            described.aim(case, operation)
        if operation.path == ENDLESS:
            case.query = (case.query or {}) | {"after": "not an id"}
        case.call_and_validate(headers=described.headers, checks=CHECKS, timeout=60)

    calls()
