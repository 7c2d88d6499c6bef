"""Pages of a PDF as pictures, for previews and thumbnails."""

from io import BytesIO

from apps.resumes.rendering.errors import NoSuchPage


def picture_of(pdf: bytes, page: int, width: int) -> bytes:
    """A page as PNG. Pages count from 1, `width` is in pixels."""
    import pypdfium2

    document = pypdfium2.PdfDocument(pdf)
    try:
        if not 1 <= page <= len(document):
            raise NoSuchPage(len(document))
        wanted = document[page - 1]
        bitmap = wanted.render(scale=width / wanted.get_width(), rev_byteorder=True)
        file = BytesIO()
        # Pages have few colours: smaller at the price of a few milliseconds.
        bitmap.to_pil().convert("RGB").save(file, "PNG", optimize=False, compress_level=6)
        return file.getvalue()
    finally:
        document.close()
