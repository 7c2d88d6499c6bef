"""Runs the checks on drawn pages."""

from typing import Any

from apps.sites.checks import checks_of
from apps.sites.facts import facts_of
from apps.sites.models import Check, Crawl
from tests.apps.sites.drawing import crawl


def checks(sample: Crawl) -> dict[str, Check]:
    return {check.id: check for check in checks_of(sample, facts_of(sample))}


def check(id: str, *bodies: str, **options: Any) -> Check:
    return checks(crawl(*bodies, **options))[id]


def state(id: str, *bodies: str, **options: Any) -> str:
    return check(id, *bodies, **options).state
