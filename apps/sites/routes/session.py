"""Who is signed in."""

from typing import Any

from fastapi import APIRouter, Request, Response

from apps.sites.routes.bodies import SignIn
from batchmill.service import GuardedRoute, Reader, sign_in, sign_out


class OpenRoute(GuardedRoute):
    """For requests without a key."""

    anonymous = True


router = APIRouter()
guarded = APIRouter(route_class=GuardedRoute)
session = APIRouter(prefix="/session", route_class=OpenRoute)


@session.post("")
async def begin_session(request: Request, response: Response, body: SignIn) -> dict[str, Any]:
    caller = await sign_in(request, response, body.key)
    return {"tenant": caller.tenant, "signedIn": True}


@session.delete("", status_code=204)
async def end_session(request: Request, response: Response) -> None:
    sign_out(request, response)


@guarded.get("/session")
async def get_session(caller: Reader) -> dict[str, Any]:
    return {"tenant": caller.tenant, "signedIn": caller.key is not None}


router.include_router(session)
router.include_router(guarded)
