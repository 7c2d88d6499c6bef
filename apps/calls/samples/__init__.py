"""A recording of an invented call, for the demo and the tests.

script ──► speech ──► a stereo recording
script     speech     recording
"""

from apps.calls.samples.recording import Sample, sample
from apps.calls.samples.script import AGENT, CALL, CUSTOMER, Line

__all__ = ["AGENT", "CALL", "CUSTOMER", "Line", "Sample", "sample"]
