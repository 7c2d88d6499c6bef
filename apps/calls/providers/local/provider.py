"""The provider `local`. Its operations run in child processes of workers."""

from apps.calls.providers.enqueued import EnqueuedProvider
from apps.calls.providers.languages import primary, unsupported
from apps.calls.providers.local.package import model_directory
from apps.calls.settings import LocalSettings
from batchmill import Client

TASK = "calls_operations.local"
LANGUAGE = "en"


class LocalProvider(EnqueuedProvider):
    name = "local"
    task = TASK

    def __init__(self, settings: LocalSettings):
        self._settings = settings

    async def check(self, mill: Client, language: str) -> None:
        model_directory(self._settings)
        if primary(language) != LANGUAGE:
            raise unsupported(self.name, language, [LANGUAGE])
