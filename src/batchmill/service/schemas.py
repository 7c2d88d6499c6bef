"""Bodies of requests and responses. Field names match the records and the SQL."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from fastapi import Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, model_validator

from batchmill.domain.artifact import ArtifactKind
from batchmill.domain.batch import BatchRecord, BatchState
from batchmill.domain.cron import Missed
from batchmill.domain.duplicate import DuplicateRecord
from batchmill.domain.job import JobLine, JobRecord, JobState
from batchmill.domain.priority import PRIORITIES
from batchmill.submission import LONGEST

Name = Annotated[str, Field(min_length=1, max_length=500)]
Seconds = Annotated[float, Field(ge=0, le=LONGEST, allow_inf_nan=False)]
Priority = Annotated[int, Field(ge=PRIORITIES.start, lt=PRIORITIES.stop)]
Count = Annotated[int, Field(ge=0, le=2_147_483_647)]


class Strict(BaseModel):
    """Refuses unknown names, because an unknown name is most likely a typing error."""

    model_config = ConfigDict(extra="forbid")


class Record(BaseModel):
    model_config = ConfigDict(from_attributes=True)


# Requests


class NewJob(Strict):
    """One job of a batch, with its own options."""

    payload: JsonValue = None
    priority: Priority | None = None
    delay: Seconds | None = None
    run_at: AwareDatetime | None = None
    dedup_key: Name | None = None
    cache_key: Name | None = None


class BatchOptionsBody(Strict):
    """Options that all jobs of a batch share."""

    task: Name
    priority: Priority | None = None
    delay: Seconds | None = Field(None, description="Seconds to wait before jobs may start.")
    run_at: AwareDatetime | None = None
    expires_in: Seconds | None = Field(
        None, description="Seconds to keep the batch. Default: 30 days."
    )
    limit: Annotated[int, Field(ge=1, le=2_147_483_647)] | None = Field(
        None, description="How many of its jobs may run at the same time."
    )
    labels: Annotated[dict[Name, Name], Field(max_length=64)] | None = None
    notify: Annotated[list[Name], Field(max_length=20)] | None = Field(
        None, description="Whom to notify when it finishes: URLs of webhooks, email addresses."
    )

    def options(self) -> dict[str, Any]:
        names = ("priority", "delay", "run_at", "expires_in", "limit", "labels", "notify")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class NewBatch(BatchOptionsBody):
    """Jobs to submit together: payloads as `items`, or `jobs` with their own options."""

    items: list[JsonValue] | None = None
    jobs: list[NewJob] | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> "NewBatch":
        if (self.items is None) == (self.jobs is None):
            raise ValueError("Give either items or jobs.")
        return self


class Targets(Strict):
    """Targets of notifications: URLs of webhooks, email addresses."""

    targets: Annotated[list[Name], Field(min_length=1, max_length=20)]


class NewWebhook(Strict):
    url: Annotated[str, Field(min_length=1, max_length=2_000)]


class LimitChange(Strict):
    """Slots or a rate that override the code's limit, or `reset` to return to the code's limit."""

    slots: Count | Literal["unlimited"] | None = None
    rate: Annotated[int, Field(ge=1, le=2_147_483_647)] | None = Field(
        None, description="Starts in a period."
    )
    period: Annotated[float, Field(gt=0, le=86_400 * 366, allow_inf_nan=False)] = Field(
        1.0, description="Seconds."
    )
    reset: bool = False


class NewSchedule(Strict):
    cron: Name
    task: Name
    # Any, because the body is parsed JSON: pydantic would traverse all of it again.
    payload: Any = None
    timezone: Name = "UTC"
    missed: Missed = Missed.ONCE
    priority: Priority = 0


# Responses


class Links(BaseModel):
    self: str
    events: str
    jobs: str
    duplicates: str
    results: str
    archive: str


class Batch(Record):
    id: UUID
    task: str
    state: BatchState
    total: int
    waiting: int
    running: int
    completed: int
    failed: int
    cancelled: int
    duplicates: int = Field(
        description="Items without a job of their own: a live job had their dedup_key."
    )
    last_event: int
    generation: int = Field(description="Increases with each retry of the finished batch.")
    labels: dict[str, Any]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancelled_at: datetime | None
    expires_at: datetime
    links: Links


class BatchWithUsage(Batch):
    usage: dict[str, Decimal] = Field(
        description="What its jobs have used so far, by name: decimal numbers as text."
    )


class Batches(BaseModel):
    batches: list[Batch]
    next: str | None = Field(description="The cursor of the next page, if there is one.")


class JobError(Record):
    code: str
    message: str


class Progress(Record):
    stage: str
    message: str
    percent: float | None


class Attempt(Record):
    """A failed attempt, without the details that only operators may see."""

    task: str
    attempt: int
    started_at: datetime | None
    ended_at: datetime
    code: str
    message: str


class Duplicate(BaseModel):
    """An item without a job of its own, and the job that it duplicates."""

    position: int
    job_id: int
    batch_id: UUID | None = Field(description="The batch of that job. Null for a single job.")
    state: JobState | Literal["gone"] = Field(
        description="The state of that job; gone if it has expired or was deleted."
    )
    code: str | None
    message: str | None

    @classmethod
    def of(cls, found: DuplicateRecord) -> Self:
        return cls(
            position=found.position,
            job_id=found.job_id,
            batch_id=found.batch_id,
            state=found.state,
            code=found.error and found.error.code,
            message=found.error and found.error.message,
        )


class Duplicates(BaseModel):
    duplicates: list[Duplicate]
    next: str | None = Field(description="The cursor of the next page, if there is one.")


class SubmittedBatch(Batch):
    first_duplicates: list[Duplicate] = Field(
        description="Up to 100 duplicates. `links.duplicates` has all of them."
    )


class Completed(BaseModel):
    job_id: int
    position: int
    result: Any


class Failed(BaseModel):
    job_id: int
    position: int
    code: str
    message: str


class Cancelled(BaseModel):
    job_id: int
    position: int


class Results(BaseModel):
    """Results in the order of submission. They are partial until the batch finishes.

    A duplicate is in `results` if the job that it duplicates has completed.
    """

    batch: Batch
    results: list[Completed]
    failed: list[Failed]
    cancelled: list[Cancelled]
    duplicates: list[Duplicate]


class JobSummary(Record):
    id: int
    batch_id: UUID | None
    position: int
    task: str
    state: JobState
    priority: int
    attempt: int
    run_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    code: str | None
    message: str | None
    progress: Progress | None


class Jobs(BaseModel):
    jobs: list[JobSummary]
    next: str | None = Field(description="The cursor of the next page, if there is one.")


class Job(Record):
    id: int
    batch_id: UUID | None
    position: int
    task: str
    key: str
    state: JobState
    priority: int
    run_at: datetime
    attempt: int
    snoozes: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cached: bool
    payload: Any
    result: Any
    error: JobError | None
    progress: Progress | None
    labels: dict[str, Any]
    attempts: list[Attempt] = Field(description="The failed attempts, the oldest first.")


class Counted(BaseModel):
    jobs: int = Field(description="The number of affected jobs.")


class Task(BaseModel):
    name: str
    keyed: bool
    payload_limit: int
    priority: int
    registered_at: datetime


class TaskPriority(Strict):
    priority: Priority | None = Field(
        description="null restores the priority that the code declares."
    )


class Tasks(BaseModel):
    tasks: list[Task]


class Limit(Record):
    name: str
    slots: int | None
    running: int
    rate: int | None
    period: float | None
    paused: bool
    is_set: bool


class Limits(BaseModel):
    limits: list[Limit]


class UsageTotal(Record):
    """`day`, `tenant` and `task` are null unless the totals are grouped by them."""

    day: date | None
    tenant: str | None
    task: str | None
    name: str
    amount: Decimal = Field(description="A decimal number as text.")


class UsageTotals(BaseModel):
    totals: list[UsageTotal]


class Schedule(Record):
    name: str
    task: str
    payload: Any
    priority: int
    cron: str
    timezone: str
    missed: Missed
    paused: bool
    next_at: datetime
    last_at: datetime | None
    error: str | None = Field(description="Why the last firing created no job, if it did not.")


class Schedules(BaseModel):
    schedules: list[Schedule]
    next: str | None = Field(description="The cursor of the next page, if there is one.")


class Artifact(Record):
    id: UUID
    kind: ArtifactKind
    batch_id: UUID | None
    job_id: int | None
    name: str
    media_type: str
    size: int
    sha256: str
    downloads: int
    created_at: datetime
    expires_at: datetime


class Artifacts(BaseModel):
    artifacts: list[Artifact]
    next: str | None = Field(description="The cursor of the next page, if there is one.")


class Link(BaseModel):
    url: str = Field(description="Relative to the service, unless BATCHMILL_PUBLIC_URL is set.")
    seconds: float = Field(description="Seconds until it expires.")


class Webhook(Record):
    id: UUID
    url: str
    created_at: datetime
    rotated_until: datetime | None = Field(description="Until then, the old secret signs too.")
    disabled_at: datetime | None
    disabled_because: str | None


class WebhookWithSecret(Webhook):
    secret: str


class Webhooks(BaseModel):
    webhooks: list[Webhook]
    next: str | None = Field(description="The cursor of the next page, if there is one.")


class Notification(Record):
    id: UUID
    url: str | None
    email: str | None
    created_at: datetime
    told_generation: int = Field(description="The last generation of the batch that was notified.")
    job_id: int | None = Field(description="The job that sends the notification.")


class Notifications(BaseModel):
    notifications: list[Notification]


class Health(BaseModel):
    status: Literal["ok"]


class Version(BaseModel):
    version: str
    schema_version: int


def inlined(model: type[BaseModel]) -> dict[str, Any]:
    """A self-contained schema, for bodies that FastAPI does not read."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})

    def inline(node: Any) -> Any:
        if isinstance(node, list):
            return [inline(each) for each in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return inline(parts[node["$ref"].rsplit("/", 1)[1]])
        return {name: inline(each) for name, each in node.items()}

    return inline(schema)


FORM = {
    "type": "object",
    "required": ["task", "file"],
    "properties": {
        **inlined(BatchOptionsBody)["properties"],
        "payload": {"type": "string", "description": "A JSON object that all jobs share."},
        "file": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "description": "Each file makes a job, and is in its payload under the part's name.",
        },
    },
}
SUBMIT_CONTENT = {
    "application/json": {"schema": inlined(NewBatch)},
    "multipart/form-data": {"schema": FORM},
}


def batch(record: BatchRecord, request: Request) -> Batch:
    return Batch.model_validate(
        {name: getattr(record, name) for name in Batch.model_fields if name != "links"}
        | {"links": links(record.id, request)}
    )


def batch_with_usage(
    record: BatchRecord, usage: Mapping[str, Decimal], request: Request
) -> BatchWithUsage:
    return BatchWithUsage(**dict(batch(record, request)), usage=dict(usage))


def links(id: UUID, request: Request) -> Links:
    """Paths that include the prefix under which the application mounts the router."""
    at = request.url_for("batchmill.get_batch", id=str(id)).path
    return Links(
        self=at,
        events=f"{at}/events",
        jobs=f"{at}/jobs",
        duplicates=f"{at}/duplicates",
        results=f"{at}/results",
        archive=f"{at}/archive",
    )


def job_lines(records: Iterable[JobLine]) -> list[JobSummary]:
    return [JobSummary.model_validate(record) for record in records]


def job(record: JobRecord) -> Job:
    return Job.model_validate(record)
