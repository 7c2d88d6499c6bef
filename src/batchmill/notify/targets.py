"""Checks the notification targets of a batch before a submit, outside its transaction."""

from collections.abc import Mapping, Sequence
from typing import Any

from batchmill.config import NotifySettings
from batchmill.domain.notification import is_url
from batchmill.domain.task import Task
from batchmill.store.store import EngineStore


class Targets:
    def __init__(
        self,
        store: EngineStore,
        settings: NotifySettings,
        builtin_tasks: Mapping[str, Task[..., Any]],
    ):
        self._store = store
        self._settings = settings
        self._builtin_tasks = builtin_tasks

    async def check(self, targets: Sequence[str], tenant: str) -> None:
        """Refuses URLs that may not be called, and mail addresses that have no mails left.
        Registers the tasks that notify. It looks up names, so call it outside transactions."""
        if not targets:
            return
        await self._store.tasks.register(self._builtin_tasks)
        if mails := [target for target in targets if not is_url(target)]:
            await self._store.notifications.require_mail_quota(mails, tenant, self._settings)
        if urls := [target for target in targets if is_url(target)]:
            # Imported here because most processes never notify.
            from batchmill.notify.webhook import permit

            await permit(urls, self._settings, tenant)
