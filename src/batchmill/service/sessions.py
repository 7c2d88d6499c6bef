"""Sessions of pages: a signed cookie that was created from a key, and protection against requests
that other sites make with it."""

import asyncio
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi import Request, Response
from starlette.requests import HTTPConnection

from batchmill.artifacts.signer import Signer
from batchmill.domain.link import Verified
from batchmill.errors import Forbidden, LinkExpired, NotAuthenticated
from batchmill.service.service import Service, of_request

SESSION = "batchmill_session"
CSRF = "batchmill_csrf"
CSRF_HEADER = "X-CSRF-Token"
PURPOSE = "session"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# Values of Sec-Fetch-Site for requests from this service's own pages or directly from the user.
OWN_SITES = ("same-origin", "none")


@dataclass(frozen=True, slots=True)
class Session:
    """The signed content of the cookie: the id of the key, and a token against forged requests.
    `ends_at` is the time of the event loop's clock at which the session expires."""

    key: str
    csrf: str
    ends_at: float | None

    @classmethod
    async def read(cls, token: str, signer: Signer) -> "Session":
        """Raises InvalidLink if the cookie was not issued here."""
        try:
            found = await signer.checked_text(PURPOSE, token)
        except LinkExpired:
            raise NotAuthenticated("This session has expired. Sign in again.") from None
        key, csrf = found.text.split()
        return cls(key, csrf, end_of(found))


def end_of(verified: Verified) -> float | None:
    """When it expires, by the clock of the event loop. The clocks of this machine and of the
    database may differ, so only the time that is left has a meaning here."""
    if verified.seconds_left is None:
        return None
    return asyncio.get_running_loop().time() + verified.seconds_left


@dataclass(frozen=True, slots=True)
class SessionToken:
    """The cookie as it was sent, which may be forged."""

    text: str

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(self.text.encode()).digest()


def token_in(connection: HTTPConnection, service: Service) -> SessionToken | None:
    if "cookie" not in connection.headers:
        return None
    text = connection.cookies.get(cookie_name(SESSION, is_secure(connection, service)))
    return SessionToken(text) if text else None


async def start_session(request: Request, response: Response, key_id: str) -> None:
    service = of_request(request)
    seconds, secure = service.settings.session_seconds, is_secure(request, service)
    csrf = secrets.token_urlsafe(24)
    token = await service.mill.signer.sign_text(PURPOSE, f"{key_id} {csrf}", seconds)
    for name, value in ((SESSION, token), (CSRF, csrf)):
        response.set_cookie(
            cookie_name(name, secure),
            value,
            max_age=int(seconds),
            secure=secure,
            # Scripts of the page read the other cookie, and send its value as a header.
            httponly=name == SESSION,
            samesite="lax",
        )


def sign_out(request: Request, response: Response) -> None:
    """Removes the cookies of the session from the browser. A copy of the cookie and open streams
    last until the session expires. To end it everywhere at once, revoke its key."""
    require_own_site(request)
    secure = is_secure(request, of_request(request))
    for name in (SESSION, CSRF):
        # Some clients replace an HttpOnly cookie only by another one.
        response.delete_cookie(
            cookie_name(name, secure), secure=secure, httponly=name == SESSION, samesite="lax"
        )


def require_csrf_token(request: Request, expected: str) -> None:
    """For requests by cookie that change something: browsers also send the cookie when another
    site makes the request. Only pages of this site can read the token and send the header.

    `expected` is the token in the signed cookie. The cookie with the token is for the page only: it
    may be left over from another session, or be set by a subdomain."""
    if request.method in SAFE_METHODS:
        return
    require_own_site(request)
    sent = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(sent.encode(), expected.encode()):
        cookie = cookie_name(CSRF, is_secure(request, of_request(request)))
        raise Forbidden(
            f"A request with a session cookie needs the header {CSRF_HEADER}, with the value of "
            f"the cookie {cookie}."
        )


def require_own_site(request: Request) -> None:
    """Rejects requests from pages of other sites. Programs that are not browsers send neither of
    these headers."""
    public = of_request(request).settings.public_url
    own = {request.headers.get("host", ""), *([urlsplit(public).netloc] if public else [])}
    origin = request.headers.get("origin")
    is_foreign = origin is not None and origin.partition("://")[2] not in own
    if is_foreign or request.headers.get("sec-fetch-site", "none") not in OWN_SITES:
        raise Forbidden("This is not accepted from pages of other sites.")


def is_secure(connection: HTTPConnection, service: Service) -> bool:
    """Whether the client uses https. Only trusted proxies can report it."""
    if connection.scope["scheme"] == "https" or (service.settings.public_url or "")[:6] == "https:":
        return True
    peer = connection.client.host if connection.client else ""
    return peer in service.proxies and connection.headers.get("x-forwarded-proto", "") == "https"


def cookie_name(name: str, secure: bool) -> str:
    """With this prefix, browsers accept the cookie only from this host, not from a subdomain."""
    return f"__Host-{name}" if secure else name
