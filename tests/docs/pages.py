"""Reads code blocks, commands and links from the documentation."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:#|--|//) ([\w/]+\.(?:py|sql|js))\n")
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code.

    A block that starts with a comment with its file name, or that calls `asyncio.run`, is a
    program. Any other block continues the block before it on the page.
    """

    page: "Page"
    line: int
    language: str
    text: str

    @property
    def file(self) -> str | None:
        if named := FILE.match(self.text):
            return named[1]
        return "program.py" if re.search(r"^asyncio\.run\(", self.text, re.MULTILINE) else None

    @property
    def lines(self) -> Iterator[str]:
        """The commands of a shell block. A command continues after a backslash or an open quote."""
        line = ""
        for part in self.text.replace("\\\n", " ").splitlines():
            line = f"{line}\n{part}" if line else part
            if is_complete(line):
                yield line
                line = ""

    @property
    def padded(self) -> str:
        """The code after as many empty lines as the page has before it.

        A traceback then shows the line number of the page.
        """
        return "\n" * self.line + self.text


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def text(self) -> str:
        return self.path.read_text()

    def blocks(self, *languages: str) -> list[Block]:
        return [
            Block(self, self.text.count("\n", 0, fence.start(2)), fence[1], fence[2])
            for fence in FENCE.finditer(self.text)
            if fence[1] in languages
        ]

    @property
    def commands(self) -> Iterator[list[str]]:
        """The arguments of every `batchmill …` command in the shell blocks."""
        for block in self.blocks("sh"):
            for line in block.lines:
                yield from _calls(shlex.split(line, comments=True))

    @property
    def mentions(self) -> Iterator[list[str]]:
        """The words after `batchmill` of every command that the prose names."""
        for span in INLINE.finditer(self.prose):
            if span[1].startswith("batchmill "):
                yield span[1].split()[1:]

    @property
    def links(self) -> Iterator[tuple[Path, str]]:
        """The targets of links to other documents: a file and an anchor."""
        for target in LINK.findall(self.prose):
            if "://" not in target:
                path, _, anchor = target.partition("#")
                yield (self.path.parent / path).resolve() if path else self.path, anchor

    @property
    def anchors(self) -> set[str]:
        return {
            re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in HEADING.findall(self.prose)
        }

    @property
    def prose(self) -> str:
        return FENCE.sub("", self.text)


def is_complete(line: str) -> bool:
    try:
        shlex.split(line, comments=True)
    except ValueError:
        return False
    return True


def _calls(words: list[str]) -> Iterator[list[str]]:
    """The arguments of `batchmill` in a command line with variables, pipes and redirections."""
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    if words and words[0] == "batchmill":
        ends = (place for place, word in enumerate(words) if word in {"|", ">", "&", "&&"})
        yield words[1 : next(ends, len(words))]
    elif "|" in words:
        yield from _calls(words[words.index("|") + 1 :])


def code_in(page: Page) -> set[str]:
    """The text in backquotes, and each of its words."""
    spans = INLINE.findall(page.text)
    return {*spans, *(word for span in spans for word in re.findall(r"[\w.-]+", span))}


@cache
def pages() -> list[Page]:
    top = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    return [Page(path) for path in [*top, *sorted((ROOT / "docs").rglob("*.md"))]]
