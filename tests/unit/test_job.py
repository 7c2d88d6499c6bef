import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill.domain.job import FINAL, JobState
from batchmill.domain.outcome import STATE_AFTER, TRANSITIONS

states = st.sampled_from(JobState)


def test_every_state_has_its_transitions():
    assert TRANSITIONS.keys() == set(JobState)


def test_a_job_ends_completed_failed_or_cancelled():
    assert {state for state in JobState if state.is_final} == FINAL
    assert {JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED} == FINAL


def test_only_failed_jobs_leave_their_final_state():
    ways_out = {(state, after) for state in FINAL for after in TRANSITIONS[state]}
    assert ways_out == {(JobState.FAILED, JobState.READY)}


@given(states, states)
def test_only_running_jobs_complete_or_fail(before: JobState, after: JobState):
    if after in TRANSITIONS[before] and after in {JobState.COMPLETED, JobState.FAILED}:
        assert before is JobState.RUNNING


@given(states)
def test_all_jobs_that_have_not_ended_can_be_cancelled(state: JobState):
    assert (JobState.CANCELLED in TRANSITIONS[state]) is not state.is_final


def test_every_state_can_be_reached_from_the_start():
    reached = {JobState.READY}
    while more := {after for state in reached for after in TRANSITIONS[state]} - reached:
        reached |= more
    assert reached == set(JobState)


@pytest.mark.parametrize("state", list(JobState))
def test_every_state_has_an_event(state: JobState):
    assert state in STATE_AFTER.values()
