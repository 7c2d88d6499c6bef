"""Languages as users name them, such as `en`, `en-US` and `pt_BR`."""

from collections.abc import Collection

from apps.calls.providers.contract import UnsupportedLanguage


def normal(language: str) -> str:
    """The code in one spelling, such as `pt-br`."""
    return language.strip().replace("_", "-").lower()


def primary(language: str) -> str:
    """The language without its region."""
    return normal(language).partition("-")[0].strip()


def unsupported(provider: str, language: str, supported: Collection[str]) -> UnsupportedLanguage:
    return UnsupportedLanguage(
        f'The provider {provider} does not support the language "{language}". '
        f"It supports: {', '.join(sorted(supported))}."
    )
