"""The engine over HTTP: `create_app` makes an application, `service_router` extends yours."""

from batchmill.service.addresses import counted_as
from batchmill.service.app import create_app, service_router
from batchmill.service.caller import client_address
from batchmill.service.service import AnyService
from batchmill.service.slowing import Slowing

__all__ = [
    "AnyService",
    "Slowing",
    "client_address",
    "counted_as",
    "create_app",
    "service_router",
]
