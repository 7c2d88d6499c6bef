"""A polite and bounded crawler of one site.

| limit or rule | what happens |
|---|---|
| another host | not requested. `www.` and the bare domain are one site, http and https too |
| the start page redirects to another host | that host is the site, after its own robots.txt |
| another page redirects to another host | `off_site` |
| robots.txt forbids an address | `disallowed`; the start page: `robots_disallowed` |
| robots.txt answers 5xx or 429, or too slowly | `robots_unavailable`, to be retried |
| a crawl delay | one request at a time, with that delay, up to `CrawlLimits.delay` |
| no crawl delay | up to `CrawlLimits.parallel` requests at once |
| nofollow, on the page or in a header | the links of that page are not used |
| numbers that never end, as in a calendar | `trap`, from `CrawlLimits.similar` addresses on |

A redirect is not followed before its target is checked like any other address.
"""

from apps.sites.crawl.crawler import Report, crawl
from apps.sites.crawl.crawlers import AGENT, AI_CRAWLERS
from apps.sites.crawl.limits import CrawlLimits
from apps.sites.crawl.pages import Read

__all__ = ["AGENT", "AI_CRAWLERS", "CrawlLimits", "Read", "Report", "crawl"]
