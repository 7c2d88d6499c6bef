"""Every error of rendering.

    RenderingError            Permanent: another attempt with this document would fail too
    ├── TooManyPages          TOO_MANY_PAGES
    ├── TooManyParts          TOO_MANY_PARTS: the layout would take too much memory
    ├── TooMuchMemory         TOO_MUCH_MEMORY: it did, in spite of all limits
    ├── NoSuchPage            NO_SUCH_PAGE: the PDF has fewer pages
    └── RendererMissing       RENDERER_MISSING: a library is not installed on this machine

The code is for programs. The message is shown to end users and never quotes the document.
"""

from batchmill import Permanent


class RenderingError(Permanent):
    code = "RENDERING"

    def __init__(self, message: str):
        super().__init__(message, code=self.code)


class TooManyPages(RenderingError):
    code = "TOO_MANY_PAGES"

    def __init__(self, limit: int):
        super().__init__(
            f"This resume has more than {limit} pages. Shorten it, or choose the design "
            "“compact” and smaller margins."
        )


class TooManyParts(RenderingError):
    code = "TOO_MANY_PARTS"

    def __init__(self, limit: int):
        super().__init__(
            f"This resume has more than {limit:,} parts, such as entries, lines and links. "
            "Shorten it."
        )


class TooMuchMemory(RenderingError):
    code = "TOO_MUCH_MEMORY"

    def __init__(self) -> None:
        super().__init__("This resume needs more memory than an export may use. Shorten it.")


class NoSuchPage(RenderingError):
    code = "NO_SUCH_PAGE"

    def __init__(self, page_count: int):
        pages = "page" if page_count == 1 else "pages"
        super().__init__(f"There is no such page: the document has {page_count} {pages}.")


class RendererMissing(RenderingError):
    code = "RENDERER_MISSING"

    def __init__(self) -> None:
        super().__init__(
            "The libraries that lay out text (Pango) are not installed. The operator can install "
            "them with: bin/install-servers apps"
        )
