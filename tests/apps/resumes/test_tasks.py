"""How exports are retried."""

import pytest

from apps.resumes.settings import ResumesSettings
from apps.resumes.tasks import RETRY, export


def test_an_export_has_five_attempts_with_growing_delays() -> None:
    assert export.retry == RETRY
    assert ResumesSettings.model_fields["retry_seconds"].default == 60
    assert (RETRY.attempts, RETRY.factor, RETRY.cap) == (5, 2, 3_600)
    for failed, delay in enumerate((1, 2, 4, 8), 1):
        expected = delay * RETRY.base
        assert RETRY.delay(failed, 0) == pytest.approx(expected * 0.8)
        assert RETRY.delay(failed, 1) == pytest.approx(expected * 1.2)
