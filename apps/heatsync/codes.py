"""Stable error codes of sheets that were not read, and which of them may be retried."""

from batchmill import BadStatus, Rule

RETRIABLE = frozenset(
    {"RATE_LIMIT", "TIMEOUT", "NETWORK_ERROR", "AI_OVERLOADED", "SERVICE_UNAVAILABLE"}
)

# Codes of the engine, the fetcher and the model client → codes of HeatSync.
CODES = {
    "rate_limited": "RATE_LIMIT",
    "timeout": "TIMEOUT",
    "too_slow": "TIMEOUT",
    "model_too_slow": "TIMEOUT",
    "network": "NETWORK_ERROR",
    "unreachable": "NETWORK_ERROR",
    "model_unreachable": "NETWORK_ERROR",
    "overloaded": "AI_OVERLOADED",
    "unavailable": "SERVICE_UNAVAILABLE",
    "worker_lost": "SERVICE_UNAVAILABLE",
    "out_of_memory": "SERVICE_UNAVAILABLE",
    "too_large": "PDF_TOO_LARGE",
    "crashed": "EXTRACTION_FAILED",
    "unexpected": "EXTRACTION_FAILED",
    "invalid_input": "EXTRACTION_FAILED",
    "rejected": "EXTRACTION_FAILED",
    "model_bad_answer": "EXTRACTION_FAILED",
    "model_answer_too_long": "EXTRACTION_FAILED",
    "model_declined": "EXTRACTION_FAILED",
    "cancelled": "CANCELLED",
}


def _is_server_error(error: BaseException) -> bool:
    return isinstance(error, BadStatus) and error.status >= 500


ADVICE = "download the PDF and choose it here."
# For errors of the server of a PDF. The first rule that matches applies.
DOWNLOAD_RULES = [
    Rule(
        429,
        code="RATE_LIMIT",
        transient=True,
        message=f"The server of this PDF limits downloads. Try again later, or {ADVICE}",
    ),
    Rule(
        (408, 504, 524),
        code="TIMEOUT",
        transient=True,
        message=f"The server of this PDF takes too long to respond. Try again later, or {ADVICE}",
    ),
    Rule(
        _is_server_error,
        code="SERVICE_UNAVAILABLE",
        transient=True,
        message=f"The server of this PDF reports an error. Try again later, or {ADVICE}",
    ),
    Rule(
        (404, 410),
        code="NOT_FOUND",
        transient=False,
        message=f"There is no file at this address. Check the address, or {ADVICE}",
    ),
    Rule(
        BadStatus,
        code="NOT_ALLOWED",
        transient=False,
        message=f"The server of this PDF refuses the download. Instead, {ADVICE}",
    ),
]


def _is_crash(error: BaseException) -> bool:
    return getattr(error, "error_code", None) == "crashed"


# Bugs of the reader, in layouts that it does not know.
UNEXPECTED = (
    ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError,
)  # fmt: skip
# Reading the same PDF again would fail in the same way.
READ_RULES = [
    Rule(
        TimeoutError,
        code="EXTRACTION_FAILED",
        transient=False,
        message="This PDF takes too long to read. Choose the heat sheet of one session.",
    ),
    Rule(
        MemoryError,
        code="PDF_TOO_LARGE",
        transient=False,
        message="This PDF needs too much memory to read. Choose the heat sheet of one session.",
    ),
    Rule(
        (_is_crash, *UNEXPECTED),
        code="EXTRACTION_FAILED",
        transient=False,
        message="This PDF cannot be read: it is damaged or has an unknown layout.",
    ),
]


def code_of(code: str) -> str:
    return CODES.get(code, code.upper())


def is_retriable(code: str) -> bool:
    return code_of(code) in RETRIABLE
