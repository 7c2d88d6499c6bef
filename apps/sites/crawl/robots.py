"""The rules of a robots.txt, by RFC 9309.

Written here and not taken from a library: in a file of 500 KiB with many agents and many rules, a
parser that copies each rule to each agent uses gigabytes, and several match a part of the name.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import quote, urlsplit

# RFC 9309 requires at least 500 kibibytes.
MOST = 512 * 1024
# More than any real site lists.
SITEMAPS = 50

_LINE = re.compile(r"\r\n|\r|\n")
_TOKEN = re.compile(r"[^\s/;]+")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_ANYTHING = re.compile(r"\*+")


@dataclass(frozen=True, slots=True)
class Rule:
    """`*` in the pattern stands for any text, `$` at its end for the end of the path."""

    allows: bool
    pattern: str

    def matches(self, path: str) -> bool:
        is_whole = self.pattern.endswith("$")
        first, *others = self.pattern.removesuffix("$").split("*")
        if not path.startswith(first):
            return False
        if not others:
            return not is_whole or len(path) == len(first)
        *middle, last = others
        at = len(first)
        for part in middle:
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        if is_whole:
            return path.endswith(last) and len(path) - len(last) >= at
        return path.find(last, at) >= 0


@dataclass(slots=True)
class Group:
    """The rules for some agents."""

    agents: set[str] = field(default_factory=set)
    rules: list[Rule] = field(default_factory=list)
    delay: float | None = None
    has_begun: bool = False


class Robots:
    def __init__(self, groups: list[Group], sitemaps: list[str]):
        self._groups = groups
        self._rules: dict[str, list[Rule]] = {}
        self.sitemaps = sitemaps

    @classmethod
    def parse(cls, text: str) -> Self:
        groups: list[Group] = []
        sitemaps: list[str] = []
        for line in _LINE.split(text.removeprefix("\ufeff")):
            name, mark, value = line.partition("#")[0].partition(":")
            if mark and name.strip().lower() == "sitemap":
                sitemaps.append(value.strip())
            elif mark:
                _read(groups, name.strip().lower(), value.strip())
        return cls(groups, sitemaps[:SITEMAPS])

    def allows(self, address: str, agent: str) -> bool:
        """The longest matching rule decides; of two equal ones, the one that allows. What no rule
        matches is allowed."""
        path = _path(address)
        if path == "/robots.txt":
            return True
        found = next((rule for rule in self._rules_for(agent) if rule.matches(path)), None)
        return found is None or found.allows

    def delay(self, agent: str) -> float | None:
        """The seconds between two requests. Not part of the RFC, but in wide use."""
        found = [each.delay for each in self._groups_for(agent) if each.delay is not None]
        return max(found, default=None)

    def _rules_for(self, agent: str) -> list[Rule]:
        if agent not in self._rules:
            rules = [rule for group in self._groups_for(agent) for rule in group.rules]
            rules.sort(key=lambda rule: (-len(rule.pattern), not rule.allows))
            self._rules[agent] = rules
        return self._rules[agent]

    def _groups_for(self, agent: str) -> list[Group]:
        """All groups that name the agent, which count as one. Otherwise those for all agents."""
        named = [group for group in self._groups if agent.lower() in group.agents]
        return named or [group for group in self._groups if "*" in group.agents]


ALLOWS_ALL = Robots([], [])


def _read(groups: list[Group], name: str, value: str) -> None:
    if name == "user-agent":
        _add_agent(groups, value)
    elif groups and name in ("allow", "disallow"):
        groups[-1].has_begun = True
        if value:
            pattern = _ANYTHING.sub("*", _normalised(value))
            groups[-1].rules.append(Rule(name == "allow", pattern))
    elif groups and name == "crawl-delay":
        groups[-1].has_begun = True
        groups[-1].delay = _seconds(value)


def _add_agent(groups: list[Group], value: str) -> None:
    """Agents that follow each other share a group."""
    if not groups or groups[-1].has_begun:
        groups.append(Group())
    if token := _TOKEN.match(value):
        groups[-1].agents.add(token[0].lower())


def _seconds(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _path(address: str) -> str:
    parts = urlsplit(address)
    return _normalised((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))


def _normalised(text: str) -> str:
    """Patterns and paths are compared in one form: only unreserved characters without an escape,
    everything outside ASCII with one."""

    def one(found: re.Match[str]) -> str:
        character = chr(int(found[1], 16))
        return character if _UNRESERVED.fullmatch(character) else found[0].upper()

    ascii_only = quote(text, safe="!#$%&'()*+,/:;=?@[]~\"<>\\^`{|} ", errors="replace")
    return _ESCAPE.sub(one, ascii_only)
