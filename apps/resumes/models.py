"""The payloads and the results of jobs."""

from pydantic import BaseModel, ConfigDict

from apps.resumes.options import ExportOptions
from batchmill import Artifact


class Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Export(Model):
    """`document` is the JSON text of the document when the export was requested. The job reads it,
    so a document that cannot be read fails alone and not with the others of its batch."""

    document: str
    options: ExportOptions
    file_name: str


class ExportResult(Model):
    file: Artifact
    page_count: int
    warnings: tuple[str, ...]


class Preview(Model):
    """`page` counts from 1; the last page stands for those after it. `width` is in pixels."""

    document: str
    options: ExportOptions
    page: int
    width: int


class Picture(Model):
    """`image` is a PNG in Base64."""

    image: str
    page: int
    page_count: int
    warnings: tuple[str, ...]
