"""The engine over HTTP: `create_app` makes an application, `service_router` extends yours. The rest
is for the routes of your application. The modules in this package are private."""

from batchmill.service.addresses import counted_as
from batchmill.service.app import create_app, service_router
from batchmill.service.caller import (
    Administrator,
    Caller,
    Operator,
    Reader,
    Submitter,
    client_address,
    sign_in,
)
from batchmill.service.components import PAGE_HEADERS, add_components
from batchmill.service.form import FileTooLarge, Form, FormFile
from batchmill.service.links import ByKeyOrLink, Viewer, signed_url
from batchmill.service.problems import BadRequest, Problem, TooLarge, problem_of
from batchmill.service.requests import GuardedRoute
from batchmill.service.routes.batches import IdempotencyKey
from batchmill.service.sending import send_file, send_zip
from batchmill.service.service import EventStreams
from batchmill.service.sessions import sign_out
from batchmill.service.slowing import Slowing
from batchmill.service.sse import LastEventId, Streams

__all__ = [
    "PAGE_HEADERS",
    "Administrator",
    "BadRequest",
    "ByKeyOrLink",
    "Caller",
    "EventStreams",
    "FileTooLarge",
    "Form",
    "FormFile",
    "GuardedRoute",
    "IdempotencyKey",
    "LastEventId",
    "Operator",
    "Problem",
    "Reader",
    "Slowing",
    "Streams",
    "Submitter",
    "TooLarge",
    "Viewer",
    "add_components",
    "client_address",
    "counted_as",
    "create_app",
    "problem_of",
    "send_file",
    "send_zip",
    "service_router",
    "sign_in",
    "sign_out",
    "signed_url",
]
