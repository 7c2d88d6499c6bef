"""All queries that batchmill sends to Postgres, by noun. Only this package names queries."""

from functools import cached_property

from batchmill.store.artifacts import ArtifactStore
from batchmill.store.attempts import AttemptStore
from batchmill.store.batches import BatchStore
from batchmill.store.database import Database, PooledDatabase, TenantDatabase, Timeouts
from batchmill.store.duplicates import DuplicateStore
from batchmill.store.feeds import FeedStore
from batchmill.store.jobs import JobStore
from batchmill.store.keys import KeyStore
from batchmill.store.limits import LimitStore
from batchmill.store.notifications import NotificationStore
from batchmill.store.overview import OverviewStore
from batchmill.store.providers import ProviderStore
from batchmill.store.schedules import ScheduleStore
from batchmill.store.submissions import SubmissionStore
from batchmill.store.tasks import TaskStore
from batchmill.store.tenants import TenantStore
from batchmill.store.upkeep import UpkeepStore
from batchmill.store.usage import UsageStore
from batchmill.store.webhooks import WebhookStore
from batchmill.store.workers import WorkerStore


class Store:
    """The same interface for all tenants and for one. A tenant sees fewer rows and may do less."""

    def __init__(self, database: Database):
        self.database = database

    @cached_property
    def submissions(self) -> SubmissionStore:
        return SubmissionStore(self.database)

    @cached_property
    def batches(self) -> BatchStore:
        return BatchStore(self.database)

    @cached_property
    def jobs(self) -> JobStore:
        return JobStore(self.database)

    @cached_property
    def duplicates(self) -> DuplicateStore:
        return DuplicateStore(self.database)

    @cached_property
    def artifacts(self) -> ArtifactStore:
        return ArtifactStore(self.database)

    @cached_property
    def limits(self) -> LimitStore:
        return LimitStore(self.database)

    @cached_property
    def schedules(self) -> ScheduleStore:
        return ScheduleStore(self.database)

    @cached_property
    def notifications(self) -> NotificationStore:
        return NotificationStore(self.database)

    @cached_property
    def webhooks(self) -> WebhookStore:
        return WebhookStore(self.database)

    @cached_property
    def tasks(self) -> TaskStore:
        return TaskStore(self.database)

    @cached_property
    def usage(self) -> UsageStore:
        return UsageStore(self.database)


class EngineStore(Store):
    """The store of the engine, which sees all tenants. Also serves workers and the upkeep."""

    database: PooledDatabase

    def __init__(self, database: PooledDatabase):
        super().__init__(database)

    @cached_property
    def attempts(self) -> AttemptStore:
        return AttemptStore(self.database)

    @cached_property
    def providers(self) -> ProviderStore:
        return ProviderStore(self.database)

    @cached_property
    def workers(self) -> WorkerStore:
        return WorkerStore(self.database)

    @cached_property
    def upkeep(self) -> UpkeepStore:
        return UpkeepStore(self.database)

    @cached_property
    def keys(self) -> KeyStore:
        return KeyStore(self.database)

    @cached_property
    def feeds(self) -> FeedStore:
        return FeedStore(self.database)

    @cached_property
    def tenants(self) -> TenantStore:
        return TenantStore(self.database)

    @cached_property
    def overview(self) -> OverviewStore:
        return OverviewStore(self.database)

    def of_tenant(self, tenant: str, timeouts: Timeouts | None = None) -> Store:
        return Store(TenantDatabase(self.database, tenant, timeouts))

    async def close(self) -> None:
        await self.database.close()
        self.tasks.forget()
