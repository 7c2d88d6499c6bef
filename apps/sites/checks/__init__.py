"""Local checks of a site: what helps or keeps AI systems from reading it."""

from apps.sites.checks.run import checks_of
from apps.sites.checks.table import CHECKS

__all__ = ["CHECKS", "checks_of"]
