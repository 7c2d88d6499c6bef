"""Providers of transcripts: one contract, four implementations."""

from apps.calls.providers.contract import (
    OperationFailed,
    OperationRefused,
    Pending,
    Provider,
    ProviderNotConfigured,
    UnsupportedLanguage,
)

__all__ = [
    "OperationFailed",
    "OperationRefused",
    "Pending",
    "Provider",
    "ProviderNotConfigured",
    "UnsupportedLanguage",
]
