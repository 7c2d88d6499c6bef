"""A user's application that includes the service."""

from fastapi import FastAPI

from batchmill import WorkerOptions
from batchmill.service import service_router
from tests.service.shop import mill

app = FastAPI()
app.include_router(service_router(mill, worker=WorkerOptions()), prefix="/mill")


@app.get("/own")
async def get_own() -> str:
    return "own"
