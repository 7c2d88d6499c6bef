"""Why a sheet was not read, as the API says it: stable codes, and which are worth another try."""

from batchmill import Rule

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
    "too_large": "PDF_TOO_LARGE",
    "crashed": "EXTRACTION_FAILED",
    "unexpected": "EXTRACTION_FAILED",
    "cancelled": "CANCELLED",
}


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
