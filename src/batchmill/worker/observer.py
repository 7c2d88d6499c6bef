"""Records metrics and traces of a worker, if they are enabled."""

from batchmill.domain.demand import Delivered
from batchmill.domain.outcome import LOST, RULES, Outcome
from batchmill.engine import Engine
from batchmill.telemetry import tracing
from batchmill.worker.attempt import Attempt, Stop


class Observer:
    """Checks once whether tracing is enabled. Metrics can be enabled at any time."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self.spans = tracing.spans()

    def ended(self, attempt: Attempt, ended: Outcome | None, *, is_lost: bool) -> None:
        if (meter := self._engine.meter) is not None:
            name = _name(attempt, ended, is_lost)
            meter.attempt_ended(attempt.claim.task, name, attempt.begun_at)
            if name != LOST and (usage := attempt.usage):
                meter.used(attempt.claim.task, usage)
        if attempt.span is not None:
            name = _name(attempt, ended, is_lost)
            attempt.span.end(name, _code(name, ended))

    def called(self, seconds: float, answer: Delivered | None) -> None:
        """Records the duration of a call. `answer` is None if the call failed."""
        meter = self._engine.meter
        if meter is not None:
            meter.called(seconds, failed=answer is None)
            for claim in answer.claims if answer else ():
                meter.job_waited(claim.task, claim.waited)
        if answer and self.spans is not None:
            self.spans.waits(answer.claims)


def _name(attempt: Attempt, ended: Outcome | None, is_lost: bool) -> str:
    """Names the outcome. An attempt without one was lost, or recorded its own completion."""
    if ended is not None:
        return RULES[ended.kind].name
    return LOST if is_lost or attempt.stop is Stop.LOST else RULES["completed"].name


def _code(name: str, ended: Outcome | None) -> str | None:
    if ended is not None and ended.error is not None:
        return ended.error["code"]
    return "lease_lost" if name == LOST else None
