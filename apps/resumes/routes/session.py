"""Who is signed in, what they may use, and the designs."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from apps.resumes.answers import Answer, ApiRoute, OpenRoute, answer
from apps.resumes.designs import DESIGNS
from batchmill.service import Reader, sign_in, sign_out

router = APIRouter()
guarded = APIRouter(route_class=ApiRoute)
session = APIRouter(prefix="/session", route_class=OpenRoute)


class SignIn(BaseModel):
    key: str


@session.post("")
async def begin_session(request: Request, response: Response, body: SignIn) -> Answer:
    caller = await sign_in(request, response, body.key)
    return answer({"userId": caller.tenant, "signedIn": True})


@session.delete("")
async def end_session(request: Request, response: Response) -> Answer:
    sign_out(request, response)
    return answer()


@guarded.get("/session")
async def get_session(caller: Reader) -> Answer:
    return answer({"userId": caller.tenant, "signedIn": caller.key is not None})


@guarded.get("/templates")
async def list_templates(caller: Reader) -> Answer:
    return answer([design._asdict() for design in DESIGNS])


@guarded.get("/quota")
async def get_quota(caller: Reader) -> Answer:
    use = await caller.client.quota()
    return answer(
        {
            "storage": {"used": use.stored_bytes, "limit": use.storage_bytes},
            "operations": {
                "used": use.operations,
                "limit": use.operations_per_day,
                "resetsAt": use.resets_at,
            },
        }
    )


router.include_router(session)
router.include_router(guarded)
