"""One page: bytes → content."""

from apps.sites.models import PageContent
from apps.sites.page.addresses import base_of, contacts_of, links_of
from apps.sites.page.charset import decode
from apps.sites.page.jsonld import jsonld_of
from apps.sites.page.metadata import (
    alternates_of,
    canonical_of,
    count_scripts,
    keywords_of,
    language_of,
    meta_of,
    robots_of,
    title_of,
)
from apps.sites.page.microdata import microdata_of
from apps.sites.page.opengraph import opengraph_of
from apps.sites.page.rdfa import rdfa_of
from apps.sites.page.tree import parse
from apps.sites.page.visible import headings_of, images_of, visible_text

MOST_PROBLEMS = 50


def read_page(url: str, body: bytes, content_type: str | None) -> PageContent:
    """Never raises, whatever the bytes are. `url` is the address after redirects."""
    text, problems = decode(body, content_type)
    tree = parse(text)
    problems += tree.problems
    base = base_of(tree, url)
    robots = robots_of(tree)
    return PageContent(
        url=url,
        canonical=canonical_of(tree, base, problems),
        language=language_of(tree),
        alternates=alternates_of(tree, base, problems),
        title=title_of(tree),
        description=meta_of(tree, "description"),
        keywords=keywords_of(tree),
        headings=headings_of(tree.root),
        text=visible_text(tree.root, problems),
        links=links_of(tree, base, problems),
        contacts=contacts_of(tree),
        images=images_of(tree.root, base),
        structured=[
            *jsonld_of(tree, problems),
            *microdata_of(tree, base, problems),
            *rdfa_of(tree, base, problems),
            *opengraph_of(tree),
        ],
        scripts=count_scripts(tree),
        is_indexed=robots.is_indexed,
        follows_links=robots.follows_links,
        problems=list(dict.fromkeys(problems))[:MOST_PROBLEMS],
    )
