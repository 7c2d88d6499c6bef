"""The API under /api/v1, a module for each noun."""

from fastapi import APIRouter

from apps.resumes.routes import batches, documents, exports, history, previews, session
from apps.resumes.views import API

router = APIRouter(prefix=API)
for part in (session, documents, previews, exports, batches, history):
    router.include_router(part.router)
