"""Checks of what a reader without scripts gets: text, characters, alternative texts."""

import re

from apps.sites.checks.counting import count, part, state_of
from apps.sites.checks.table import check
from apps.sites.models import Check, Image, PageContent

# Words. A page with fewer and with scripts builds its text in the browser.
FEWEST_WORDS = 50

_WORD = re.compile(r"[^\W_]+")
# Scripts without spaces between words, such as Chinese, have two characters in a word or so.
_WITHOUT_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]")
_PLACEHOLDERS = {"image", "img", "photo", "picture", "alt", "placeholder", "untitled"}
_FILE = re.compile(r"[\w-]+\.(?:jpe?g|png|gif|webp|svg|avif)", re.IGNORECASE)


def check_text(pages: list[PageContent]) -> Check:
    bad = [page for page in pages if page.scripts and count_words(page.text) < FEWEST_WORDS]
    if not bad:
        fewest = min(count_words(page.text) for page in pages)
        return check(
            "text-without-scripts",
            "pass",
            f"Every page shows its text without scripts: at least {count(fewest, 'word')}.",
        )
    worst = min(bad, key=lambda page: count_words(page.text))
    is_start = pages[0] in bad
    return check(
        "text-without-scripts",
        "fail" if is_start else state_of(bad, pages),
        f"{part(bad, pages)} show fewer than {FEWEST_WORDS} words without scripts. {worst.url} has "
        f"{count(count_words(worst.text), 'word')} and {count(worst.scripts, 'script')}.",
        "Send the text in the HTML: render pages on the server or when you publish them. Most AI "
        "crawlers run no scripts.",
        [page.url for page in bad],
    )


def check_encoding(pages: list[PageContent]) -> Check:
    bad = [page.url for page in pages if "�" in f"{page.title}{page.text}"]
    if not bad:
        return check("encoding", "pass", "No page has broken characters.")
    return check(
        "encoding",
        "warn",
        f"{part(bad, pages)} have characters that cannot be read.",
        'Save all pages as UTF-8 and declare it: <meta charset="utf-8">.',
        bad,
    )


def check_alt_texts(pages: list[PageContent]) -> Check:
    images = {image.url: image for page in pages for image in page.images}
    bad = [image for image in images.values() if not _is_described(image)]
    if not images:
        return check("alt-texts", "pass", "The pages have no images.")
    if not bad:
        return check("alt-texts", "pass", f"All of {count(len(images), 'image')} have an alt text.")
    urls = {image.url for image in bad}
    return check(
        "alt-texts",
        state_of(bad, images),
        f"{part(bad, images, 'image')} have no alt text or an empty phrase such as `...`.",
        'Describe each image in its alt attribute. Use alt="" for decorations only.',
        [page.url for page in pages if any(image.url in urls for image in page.images)],
    )


def count_words(text: str) -> int:
    return len(_WORD.findall(text)) + len(_WITHOUT_SPACES.findall(text)) // 2


def _is_described(image: Image) -> bool:
    """An empty alternative text is right for a decoration."""
    if image.alt is None:
        return False
    alt = image.alt.strip().casefold()
    is_empty_phrase = bool(alt) and not _WORD.search(alt)
    return not is_empty_phrase and alt not in _PLACEHOLDERS and not _FILE.fullmatch(alt)
