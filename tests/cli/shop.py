"""A sample application for the tests of the command line: orders are packed, then sent."""

import asyncio
import signal

from pydantic import BaseModel

from batchmill import Advance, Job, Mill, Permanent, Retry, Transient

SOLD_OUT = 13
FAILS_ONCE = 7

mill = Mill()
nothing = "not a mill"


class Order(BaseModel):
    number: int


@mill.task(retry=Retry(attempts=2, base=0, jitter=0))
async def pack(job: Job, order: Order) -> Advance:
    if order.number == SOLD_OUT:
        raise Permanent("It is [bold]sold out.", code="sold_out")
    if order.number == FAILS_ONCE and job.attempt == 1:
        raise Transient("The shelf was locked.", code="locked")
    job.use("parcels", 1)
    job.use("eur", 1234.5)
    return Advance(send, order)


@mill.task
async def send(order: Order) -> str:
    return f"sent {order.number}"


@mill.task
async def hold(order: Order) -> None:
    await asyncio.Event().wait()


@mill.task(process=True)
def hold_in_process(order: Order) -> None:
    signal.pause()
