"""Checks of llms.txt."""

import re

from apps.sites.checks.counting import count
from apps.sites.checks.table import check
from apps.sites.models import Check, Crawl

_LINK = re.compile(r"\[[^\]\n]{1,200}\]\((?:https?://|/|\./)[^)\s]{0,2000}\)")
_HTML = re.compile(r"\s*<(?:!doctype|html|head|body)\b", re.IGNORECASE)


def check_llms(crawl: Crawl) -> Check:
    if crawl.llms_txt and not _HTML.match(crawl.llms_txt.text):
        size = count(len(crawl.llms_txt.text), "character")
        return check("llms-txt", "pass", f"llms.txt is there, with {size}.")
    return check(
        "llms-txt",
        "warn",
        "There is no llms.txt." if crawl.llms_txt is None else "llms.txt is an HTML page.",
        "Publish /llms.txt: the name of your business, a summary, and links to your main pages, in "
        "Markdown.",
    )


def check_llms_format(crawl: Crawl) -> Check:
    if crawl.llms_txt is None or _HTML.match(crawl.llms_txt.text):
        return check(
            "llms-txt-format",
            "unknown",
            "There is no llms.txt to check.",
            "Publish /llms.txt first.",
        )
    faults = _faults(crawl.llms_txt.text)
    if not faults:
        links = count(len(_LINK.findall(crawl.llms_txt.text)), "link")
        return check("llms-txt-format", "pass", f"llms.txt has a title and {links}.")
    return check(
        "llms-txt-format",
        "warn",
        f"llms.txt {' and '.join(faults)}.",
        "Begin llms.txt with a line such as `# Your business`, and list your pages as "
        "`- [Menu](/menu)`.",
        [crawl.llms_txt.url],
    )


def _faults(text: str) -> list[str]:
    lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    titles = [line for line in lines if re.match(r"# +\S", line)]
    faults: list[str] = []
    if not titles:
        faults.append("has no title (a line that begins with #)")
    elif lines[0] != titles[0]:
        faults.append("does not begin with its title")
    if len(titles) > 1:
        faults.append(f"has {len(titles)} titles instead of one")
    if not _LINK.search(text):
        faults.append("has no links")
    return faults
