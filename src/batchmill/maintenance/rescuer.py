"""Ends the attempts of lost workers. Only a lapsed lease marks a worker lost, never a long run."""

import logging
import random
from typing import Any

from batchmill.domain import outcome
from batchmill.domain.job import Claim
from batchmill.domain.retry import Retry
from batchmill.store.attempts import AttemptStore

log = logging.getLogger("batchmill.upkeep")


async def rescue(attempts: AttemptStore, lapsed: list[dict[str, Any]]) -> list[Claim]:
    """Ends the lapsed attempts. Returns those that it ended."""
    if not lapsed:
        return []
    ended = [
        outcome.lost(Claim(**job["claim"]), Retry.from_json(job["retry"] or {}), random.random())
        for job in lapsed
    ]
    refused = await attempts.finish(ended)
    log.warning("Rescued %d jobs of lost workers.", len(lapsed) - len(refused))
    return [each.claim for each in ended if each.claim.id not in refused]
