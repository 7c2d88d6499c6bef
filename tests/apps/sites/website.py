"""A business website on loopback, which tests change and hold."""

import threading
from typing import Self

from apps.sites.samples import SampleSite

NAME = "Tidemill Bakery"
PAGES = 5


class Website(SampleSite):
    """The sample website. While `gate` is clear, it answers nothing; `asked` has the paths that
    were requested. Its address is a site of its own, so that runs of tests do not mix."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.asked: list[str] = []

    def answer(self, path: str) -> bytes | None:
        self.asked.append(path)
        self.gate.wait()
        return super().answer(path)

    def __exit__(self, *error: object) -> None:
        self.gate.set()
        super().__exit__(*error)

    def replace(self, path: str, old: str, new: str) -> Self:
        """Changes a text of a page."""
        page = self.files[path].decode()
        assert old in page
        self.files[path] = page.replace(old, new).encode()
        return self
