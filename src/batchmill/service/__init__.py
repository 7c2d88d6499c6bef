"""The engine over HTTP: `create_app` for a service of its own, `service_router` inside yours."""

from batchmill.service.app import create_app, service_router

__all__ = ["create_app", "service_router"]
