"""Every error of a crawl that is not one of fetching.

    RobotsDisallowed     Permanent: robots.txt forbids the start page
    RobotsUnavailable    Transient: robots.txt cannot be read, so no page may be read
    NotHtml              Permanent: the address leads to something else, such as a PDF
    PageUnreadable       Permanent: the HTML cannot be read

The run fails with them only because of its start page. For another page, they are recorded with
that page.
"""

from batchmill import Permanent, Transient


class RobotsDisallowed(Permanent):
    def __init__(self, host: str):
        super().__init__(
            f"The robots.txt of {host} forbids this address. Allow the agent batchmill there, or "
            "use another address.",
            code="robots_disallowed",
        )


class RobotsUnavailable(Transient):
    def __init__(self, host: str, reason: str, retry_after: float | None = None):
        super().__init__(
            f"The robots.txt of {host} cannot be read: {reason} No page is read before that. "
            "Try again later.",
            code="robots_unavailable",
            retry_after=retry_after,
        )


class NotHtml(Permanent):
    def __init__(self, kind: str):
        super().__init__(
            f"The address leads to {kind}, not to an HTML page. Use the address of a page.",
            code="not_html",
        )


class PageUnreadable(Permanent):
    def __init__(self) -> None:
        super().__init__("The HTML of this page cannot be read.", code="unreadable")
