"""The providers by name, with the settings of the environment."""

from apps.calls.models import ProviderName
from apps.calls.providers.contract import Provider
from apps.calls.providers.local.provider import LocalProvider
from apps.calls.providers.manual import ManualProvider
from apps.calls.providers.openai import OpenAiProvider
from apps.calls.providers.speechkit import SpeechKitProvider
from apps.calls.settings import LocalSettings, SpeechKitSettings, TranscriptionSettings


def read_providers() -> dict[ProviderName, Provider]:
    """All providers, also those that are not configured: `check` says what they lack."""
    return {
        "local": LocalProvider(LocalSettings.read()),
        "speechkit": SpeechKitProvider(SpeechKitSettings.read()),
        "openai": OpenAiProvider(TranscriptionSettings.read()),
        "manual": ManualProvider(),
    }
