"""HTML bytes → what a page says, without scripts and without I/O.

lxml is the parser, used for its events only. It tokenises as browsers do and keeps no tree of its
own, and with a bounded depth its time grows with the size of the page. For 100,000 nested `<div>`,
selectolax takes 12 s and html5lib more than 60 s. turbohtml takes 1.2 GB for 10,000 `<body>` tags
with an attribute each. extruct is not used: nested JSON or nested microdata ends it with
RecursionError, and then all structured data of the page is lost.
"""

from apps.sites.page.jsonld import JSON_LD
from apps.sites.page.read import read_page

__all__ = ["JSON_LD", "read_page"]
