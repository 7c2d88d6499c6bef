"""Reads HTML with the standard library, as far as a crawl needs it."""

from html.parser import HTMLParser
from urllib.parse import urljoin

from apps.sites.models import PageContent


def read(url: str, body: bytes, content_type: str | None) -> PageContent:
    parser = _Parser(url)
    parser.feed(body.decode(errors="replace"))
    return PageContent(
        url=url,
        canonical=parser.canonical,
        title="".join(parser.title) or None,
        text=" ".join("".join(parser.text).split()),
        links=parser.links,
        scripts=parser.scripts,
        follows_links="nofollow" not in parser.robots,
        is_indexed="noindex" not in parser.robots,
    )


class _Parser(HTMLParser):
    def __init__(self, url: str):
        super().__init__()
        self._url = url
        self._inside = ""
        self.canonical: str | None = None
        self.links: list[str] = []
        self.text: list[str] = []
        self.title: list[str] = []
        self.robots = ""
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._inside = tag
        self.scripts += tag == "script"
        if tag == "a" and "href" in given and "nofollow" not in given.get("rel", ""):
            self.links.append(urljoin(self._url, given["href"]))
        if tag == "link" and given.get("rel") == "canonical":
            self.canonical = urljoin(self._url, given["href"])
        if tag == "meta" and given.get("name") == "robots":
            self.robots = given["content"]

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "title":
            self.title.append(data)
        elif self._inside != "script":
            self.text.append(data)
