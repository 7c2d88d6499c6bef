"""The report of a run: made from a crawl and answers, compared with another one, and printed."""

from apps.sites.report.compare import Comparison, compare
from apps.sites.report.models import PageLine, Report, Website
from apps.sites.report.website import website_of

__all__ = ["Comparison", "PageLine", "Report", "Website", "compare", "website_of"]
