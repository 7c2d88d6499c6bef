"""Checks the URLs to fetch: http or https, with a host and without credentials."""

import re

import httpx

from batchmill.errors import BadUrl

LONGEST = 8_192

_PORTS = {"http": 80, "https": 443}
_LABEL = r"[a-z0-9_-]{1,63}"
# A name, or an IPv6 address without a scope such as %eth0.
_HOST = re.compile(rf"({_LABEL}\.)*{_LABEL}\.?|[0-9a-f.]*:[0-9a-f:.]*")


def parse(text: str) -> httpx.URL:
    url = _understood(text)
    if url.scheme not in _PORTS:
        raise BadUrl("Only URLs that begin with http:// or https:// can be fetched.")
    if url.userinfo:
        raise BadUrl("A URL must not contain a user name or a password.")
    if not _HOST.fullmatch(host_of(url)):
        raise BadUrl("The URL has no valid host name.")
    if not 0 < port_of(url) < 65_536:
        raise BadUrl("The port of the URL must be between 1 and 65535.")
    return url.copy_with(fragment=None)


def follow(url: httpx.URL, location: str) -> httpx.URL:
    """The target of a redirect."""
    try:
        target = parse(str(url.join(location)))
    except (httpx.InvalidURL, ValueError) as error:
        raise BadUrl(f"{host_of(url)} redirects to an invalid URL.") from error
    if url.scheme == "https" and target.scheme == "http":
        raise BadUrl(f"{host_of(url)} redirects from https to http, which is not encrypted.")
    return target


def host_of(url: httpx.URL) -> str:
    """The ASCII form used for lookups; `url.host` is the readable Unicode form."""
    return url.raw_host.decode("ascii")


def port_of(url: httpx.URL) -> int:
    return _PORTS[url.scheme] if url.port is None else url.port


def _understood(text: str) -> httpx.URL:
    if len(text) > LONGEST:
        raise BadUrl(f"The URL is too long: the limit is {LONGEST:,} characters.")
    try:
        return httpx.URL(text)
    except (httpx.InvalidURL, ValueError) as error:
        raise BadUrl("This is not a valid URL. Check the spelling.") from error
