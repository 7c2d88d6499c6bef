"""The mill of this application, and its settings. Modules that declare tasks import them here."""

from apps.calls.providers.registry import read_providers
from apps.calls.settings import CallsSettings
from apps.calls.tables import CALLS
from batchmill import Mill

settings = CallsSettings.read()
providers = read_providers()
mill = Mill(schemas=[CALLS])
