"""One form for each address, so that a page is not read twice under two spellings."""

import re
from urllib.parse import unquote_plus

import httpx

LONGEST = 2_048

# Browsers remove these from addresses.
_BLANKS = re.compile(r"[\t\r\n]")
_HOST = re.compile(rb"[0-9A-Za-z_.:-]+")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

# They say where a visitor came from, and do not change the page.
_TRACKING = re.compile(
    r"(?:utm|hsa|pk|mtm|matomo)_.*|_ga|_gl|_hsenc|_hsmi|dclid|fbclid|gad_source|gbraid|gclid|gclsrc"
    r"|igshid|li_fat_id|mc_[ce]id|mkt_tok|msclkid|oly_(?:anon|enc)_id|srsltid|ttclid|twclid|vero_id"
    r"|wbraid|wickedid|ys?clid"
)
_SESSION = re.compile(
    r"aspsessionid.*|cfid|cftoken|jsessionid|osc_?sid|phpsessid|sess(?:ion)?_?id|zenid"
)
# `sid` also names ordinary things, such as a section. A session has a long value.
_SESSION_VALUE = re.compile(r"[0-9A-Za-z_-]{16,}")

# Java: /page;jsessionid=0A1B. ASP.NET: /(S(0a1b))/page.
_SESSION_SUFFIX = re.compile(r";(?:jsessionid|phpsessid|sessionid|sid)=[^/;]*", re.IGNORECASE)
_SESSION_SEGMENT = re.compile(r"/\((?:[A-Za-z]\([0-9A-Za-z]+\))+\)(?=/|$)")


def normalise(text: str, base: str | None = None) -> str | None:
    """The address without its fragment, tracking and session parameters. None if it is no address
    of the web, or has a password. Applying it again changes nothing."""
    url = _parsed(text, base)
    if url is None:
        return None
    path, mark, query = url.raw_path.decode("ascii").partition("?")
    kept = "&".join(_kept(query)) if mark else ""
    address = f"{url.scheme}://{_authority(url)}{_path(path)}{'?' if kept else ''}{kept}"
    return address if len(address) <= LONGEST else None


def resolve(text: str, base: str) -> str | None:
    """The absolute address of a link, to the letter, without its fragment."""
    url = _parsed(text, base)
    return None if url is None else str(url.copy_with(fragment=None))


def identity(address: str) -> str:
    """Equal for addresses of the same page: http and https, www. and the bare domain, and the
    order of parameters make no difference. The address must be normalised."""
    rest = address.partition("://")[2].removeprefix("www.")
    place, mark, query = rest.partition("?")
    # Stable: several values of one name keep their order.
    return place + mark + "&".join(sorted(query.split("&"), key=_name))


def _parsed(text: str, base: str | None) -> httpx.URL | None:
    cleaned = _BLANKS.sub("", text).strip()
    try:
        url = httpx.URL(base).join(cleaned) if base else httpx.URL(cleaned)
    except (httpx.InvalidURL, ValueError):
        return None
    is_web = url.scheme in ("http", "https") and not url.userinfo
    is_valid = bool(_HOST.fullmatch(url.raw_host)) and (url.port or 1) < 65_536
    return url if is_web and is_valid else None


def _authority(url: httpx.URL) -> str:
    host = url.raw_host.decode("ascii").lower().rstrip(".")
    host = f"[{host}]" if ":" in host else host
    return host if url.port is None else f"{host}:{url.port}"


def _path(path: str) -> str:
    plain = _SESSION_SUFFIX.sub("", _unescaped(path))
    return _without_dots(_SESSION_SEGMENT.sub("", plain))


def _unescaped(text: str) -> str:
    """Decodes what needs no escape, and writes other escapes in capitals."""

    def one(found: re.Match[str]) -> str:
        character = chr(int(found[1], 16))
        return character if character in _UNRESERVED else found[0].upper()

    return _ESCAPE.sub(one, text)


def _without_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _kept(query: str) -> list[str]:
    pairs = (_unescaped(pair) for pair in query.split("&") if pair)
    return [pair for pair in pairs if not _is_noise(pair)]


def _is_noise(pair: str) -> bool:
    name, value = _name(pair), pair.partition("=")[2]
    if _TRACKING.fullmatch(name) or _SESSION.fullmatch(name):
        return True
    return name == "sid" and bool(_SESSION_VALUE.fullmatch(value))


def _name(pair: str) -> str:
    return unquote_plus(pair.partition("=")[0]).lower()
