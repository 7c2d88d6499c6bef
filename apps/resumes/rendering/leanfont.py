"""Fonts of a PDF without copies of their files."""

from typing import Any

from weasyprint.pdf import stream
from weasyprint.text.fonts import get_hb_object_data


class LeanFont(stream.Font):
    """WeasyPrint reads the whole file of each font when its first letter is drawn, and keeps it
    until the fonts are written. A font with all Chinese characters has 27 MB. This one reads the
    file when it is needed."""

    _content: bytes | None = None
    _is_made = False

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._is_made = True

    @property
    def file_content(self) -> bytes:
        if self._content is not None:
            return self._content
        content = get_hb_object_data(self.hb_face)
        assert isinstance(content, bytes)
        return content

    @file_content.setter
    def file_content(self, content: bytes) -> None:
        """Keeps only what replaces the file: the part of the font that the document uses."""
        if self._is_made:
            self._content = content


def use_lean_fonts() -> None:
    stream.Font = LeanFont
