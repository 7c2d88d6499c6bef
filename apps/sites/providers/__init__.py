"""The models that are asked, and asking them."""

from apps.sites.providers.asking import Report, ask, ask_all
from apps.sites.providers.provider import Provider, declare_limits, read_providers

__all__ = ["Provider", "Report", "ask", "ask_all", "declare_limits", "read_providers"]
