"""Texts of a document as HTML. Everything is escaped; a few marks of Markdown, which many resumes
use, become markup: **strong**, *emphasis*, [text](https://…), paragraphs and lists.

Expressions are bounded, so that no text takes long to search.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from markupsafe import Markup, escape

from apps.resumes.document import safe_link
from apps.resumes.rendering.scripts import Direction, direction_of, language_of

MARKS = re.compile(
    r"\*\*(?=\S)(?P<strong>[^*\n]{1,400})(?<=\S)\*\*"
    r"|(?<![\w*])\*(?=\S)(?P<emphasis>[^*\n]{1,400})(?<=\S)\*(?![\w*])"
    r"|\[(?P<text>[^\[\]\n]{1,200})\]"
    r"\((?P<url>[^()\s]{1,500}(?:\([^()\s]{0,100}\)[^()\s]{0,100})?)\)"
)
BULLET = re.compile(r"[ \t]*[-*•·‣–][ \t]+(?=\S)")
PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")
HYPHEN = re.compile(r"(?<=\w)-(?=\w)")
WORD_JOINER, ZERO_WIDTH_SPACE = "\u2060", "\u200b"
# Of scripts in which letters are not joined, and in which lines end only between words.
LONG_WORD = re.compile(rf"[!-\u058f{WORD_JOINER}]{{37,}}")
# Not within ligatures, such as "fi" and "tt".
SOME_LETTERS = re.compile(
    rf".{{6,20}}?(?<![-fFtT{WORD_JOINER}])(?=[^\u0300-\u036f{WORD_JOINER}fhijlt])"
)
ITEM = "item"
# Elements within lines, for a whole document. The layout takes up to 40 kB for each of them.
MOST_ELEMENTS = 2_000
TOO_MANY_MARKS = (
    f"The resume has more than {MOST_ELEMENTS:,} marks, such as **bold** and links. The others are "
    "shown as they are written."
)
# In many fonts these share a glyph with a space or a hyphen. In a PDF a glyph stands for one
# character, so every space of the document could be extracted as one of them.
LOOKALIKES = str.maketrans({"\xa0": " ", "\u2007": " ", "\u202f": " ", "\u2011": "-", "\xad": ""})


class Prose:
    """Texts of one document, for a page that is written from one side. Texts from the other side,
    and in other scripts, are marked as such. After `most` elements within lines, marks stay text,
    which is a `warning` for the user."""

    def __init__(self, page: Direction, most: int = MOST_ELEMENTS):
        self._page: Direction = page
        self._elements_left = most
        self.warning: str | None = None

    def inline(self, text: str) -> Markup:
        """A text on one line, or a part of one."""
        line = one_line(text)
        return self._spanned(line, self._marked(line))

    def words(self, texts: Iterable[str]) -> Markup:
        """Texts with commas between them."""
        return Markup(", ").join(map(self.inline, texts))

    def verbatim(self, text: str) -> Markup:
        """The same without marks: stars in an address mean nothing."""
        line = one_line(text)
        return self._spanned(line, escape(breakable(line)))

    def item(self, text: str) -> Markup:
        """An item of a list. Some authors write the bullet too."""
        return self.inline(BULLET.sub("", text, count=1))

    def paragraphs(self, text: str) -> Markup:
        """A text of several paragraphs and lists. Line ends stay."""
        parts = PARAGRAPHS.split(text.translate(LOOKALIKES).strip())
        return Markup("").join(block for part in parts for block in self._blocks(part))

    def _blocks(self, part: str) -> Iterator[Markup]:
        """Adjacent items are a list. Lines from different sides are different paragraphs."""
        for kind, grouped in groupby(part.split("\n"), self._kind):
            lines = list(grouped)
            if kind == ITEM:
                items = (Markup("<li>{}</li>").format(self.item(line)) for line in lines)
                yield Markup("<ul>{}</ul>").format(Markup("").join(items))
            else:
                text = Markup("<br>").join(map(self._marked, lines))
                yield Markup("<p{}>{}</p>").format(self.attributes("\n".join(lines)), text)

    def _spanned(self, text: str, markup: Markup) -> Markup:
        attributes = self.attributes(text)
        if not attributes or not self._take_element():
            return markup
        return Markup("<span{}>{}</span>").format(attributes, markup)

    def _kind(self, line: str) -> str:
        return ITEM if BULLET.match(line) else direction_of(line, otherwise=self._page)

    def attributes(self, text: str) -> Markup:
        """From which side a text is written, if not as the page, and its language, if known."""
        direction = direction_of(text, otherwise=self._page)
        language = language_of(text)
        return Markup("").join(
            [
                Markup(' dir="{}"').format(direction) if direction != self._page else "",
                Markup(' lang="{}"').format(language) if language else "",
            ]
        )

    def _marked(self, text: str) -> Markup:
        return Markup("").join(self._pieces(text))

    def _pieces(self, text: str) -> Iterator[Markup]:
        position = 0
        for mark in MARKS.finditer(text):
            before = text[position : mark.start()]
            yield escape(breakable(before.rstrip(" ")))
            yield self._markup_of(mark, " " if before.endswith(" ") else "")
            position = mark.end()
        yield escape(breakable(text[position:]))

    def _markup_of(self, mark: re.Match[str], space: str) -> Markup:
        """With the space before it inside: if a text before an element fits on a line except for
        its last space, WeasyPrint breaks the line after the first word."""
        link = safe_link(mark["url"])
        if mark["url"] and link is None:
            # Where a link may not go, the reader sees what was written.
            return escape(space + mark[0])
        if not self._take_element():
            self.warning = TOO_MANY_MARKS
            return escape(breakable(space + mark[0]))
        if mark["strong"]:
            return Markup("<strong>{}{}</strong>").format(space, self._marked(mark["strong"]))
        if mark["emphasis"]:
            return Markup("<em>{}{}</em>").format(space, self._marked(mark["emphasis"]))
        return Markup('<a href="{}">{}{}</a>').format(link, space, self._marked(mark["text"]))

    def _take_element(self) -> bool:
        """Whether there may be one more element within lines."""
        self._elements_left -= 1
        return self._elements_left >= 0


def one_line(text: str) -> str:
    return " ".join(text.translate(LOOKALIKES).split())


def breakable(text: str) -> str:
    """Says where lines may end, with characters that are not in the PDF.

    Not behind a hyphen: programs that extract text take it for the end of a syllable, and read
    "colour-blind" as "colourblind". But within words that are too long for a line.
    """
    text = HYPHEN.sub(f"-{WORD_JOINER}", text)
    return LONG_WORD.sub(lambda word: SOME_LETTERS.sub(rf"\g<0>{ZERO_WIDTH_SPACE}", word[0]), text)


def plain(text: str) -> str:
    """The text without marks, for places that have no markup."""
    text = Prose("ltr").inline(text).striptags()
    return text.replace(WORD_JOINER, "").replace(ZERO_WIDTH_SPACE, "")
