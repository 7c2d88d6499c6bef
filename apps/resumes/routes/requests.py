"""The bodies of requests. Options are read by their own reader, which names the field."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from apps.resumes.batches import MOST
from apps.resumes.options import ExportOptions, InvalidOptions, read_options


class Body(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class WithOptions(Body):
    """The design is an option. `templateSlug` is another place for it."""

    template_slug: str | None = None
    options: Any = None

    def chosen(self) -> ExportOptions:
        options, slug = self.options, self.template_slug
        if slug is None or not isinstance(options, dict | None):
            return read_options(options)
        given = options or {}
        if given.get("template", slug) != slug:
            raise InvalidOptions("templateSlug", "It differs from options.template.")
        try:
            return read_options(given | {"template": slug})
        except InvalidOptions as error:
            if error.field == "options.template":
                raise InvalidOptions("templateSlug", error.reason) from None
            raise


class ExportBody(WithOptions):
    document_id: UUID


class BatchBody(WithOptions):
    document_ids: Annotated[list[UUID], Field(min_length=1, max_length=MOST)]


class PreviewBody(WithOptions):
    document: Any
    page: Annotated[int, Field(ge=1, le=1_000)] = 1
