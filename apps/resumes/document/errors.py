"""Why a document is refused."""

from batchmill import InvalidInput, Permanent

CODE = "INVALID_DOCUMENT"


class InvalidDocument(InvalidInput, Permanent):
    """`path` is the place, such as `$.work[2].startDate`. `reason` never quotes the document:
    both may appear in logs and events."""

    code = CODE

    def __init__(self, path: str, reason: str):
        self.path = path
        self.reason = reason
        Permanent.__init__(self, f"{path}: {reason}", code=CODE)

    def __reduce__(self) -> tuple[type["InvalidDocument"], tuple[str, str]]:
        """For a process that raises it to another one."""
        return InvalidDocument, (self.path, self.reason)
