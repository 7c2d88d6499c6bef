"""Why a sheet was not read, as the API says it: stable codes, and which are worth another try."""

from batchmill import BadStatus, Rule

RETRIABLE = frozenset(
    {"RATE_LIMIT", "TIMEOUT", "NETWORK_ERROR", "AI_OVERLOADED", "SERVICE_UNAVAILABLE"}
)

# What the engine and the fetcher say, in HeatSync's words.
CODES = {
    "rate_limited": "RATE_LIMIT",
    "timeout": "TIMEOUT",
    "too_slow": "TIMEOUT",
    "network": "NETWORK_ERROR",
    "unreachable": "NETWORK_ERROR",
    "overloaded": "AI_OVERLOADED",
    "unavailable": "SERVICE_UNAVAILABLE",
    "worker_lost": "SERVICE_UNAVAILABLE",
    "out_of_memory": "SERVICE_UNAVAILABLE",
    "too_large": "PDF_TOO_LARGE",
    "crashed": "EXTRACTION_FAILED",
    "unexpected": "EXTRACTION_FAILED",
    "invalid_input": "EXTRACTION_FAILED",
    "rejected": "EXTRACTION_FAILED",
    "cancelled": "CANCELLED",
}


def _broken(error: BaseException) -> bool:
    return isinstance(error, BadStatus) and error.status >= 500


INSTEAD = "download the PDF and choose it here."
# What the server of a PDF answers instead of it; the first that fits counts.
NOT_GIVEN = [
    Rule(
        429,
        code="RATE_LIMIT",
        transient=True,
        message=f"The server of this PDF is asked too often: wait a while, or {INSTEAD}",
    ),
    Rule(
        (408, 504, 524),
        code="TIMEOUT",
        transient=True,
        message=f"The server of this PDF takes too long: try later, or {INSTEAD}",
    ),
    Rule(
        _broken,
        code="SERVICE_UNAVAILABLE",
        transient=True,
        message=f"The server of this PDF has trouble: try later, or {INSTEAD}",
    ),
    Rule(
        (404, 410),
        code="NOT_FOUND",
        transient=False,
        message=f"There is no file at this address: check it, or {INSTEAD}",
    ),
    Rule(
        BadStatus,
        code="NOT_ALLOWED",
        transient=False,
        message=f"The server of this PDF does not let us have it: {INSTEAD}",
    ),
]


def _crashed(error: BaseException) -> bool:
    return getattr(error, "error_code", None) == "crashed"


# Of our own mistakes, as a reader makes them with what it has not met before.
UNEXPECTED = (
    ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError,
)  # fmt: skip
# What goes wrong while a PDF is read would go wrong again.
UNREADABLE = [
    Rule(
        TimeoutError,
        code="EXTRACTION_FAILED",
        transient=False,
        message="This PDF takes too long to read.",
    ),
    Rule(
        MemoryError,
        code="PDF_TOO_LARGE",
        transient=False,
        message="This PDF needs more memory to read than there is.",
    ),
    Rule(
        (_crashed, *UNEXPECTED),
        code="EXTRACTION_FAILED",
        transient=False,
        message="This PDF cannot be read: it is damaged, or unlike any that we know.",
    ),
]


def code_of(code: str) -> str:
    return CODES.get(code, code.upper())


def is_retriable(code: str) -> bool:
    return code_of(code) in RETRIABLE
