"""A website of an invented bakery, for the demo and the tests."""

from apps.sites.samples.website import ORIGIN, SampleSite, sample_files

__all__ = ["ORIGIN", "SampleSite", "sample_files"]
