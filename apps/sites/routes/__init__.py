"""The API under /api, a module for each noun."""

from fastapi import APIRouter

from apps.sites.routes import operations, runs, session

router = APIRouter(prefix="/api")
for part in (session, runs, operations):
    router.include_router(part.router)
