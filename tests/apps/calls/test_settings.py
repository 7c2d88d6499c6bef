"""Settings of the application."""

import pytest

from apps.calls.settings import OPENAI, CallsSettings


def test_a_key_of_other_programs_sends_no_transcript_to_a_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-program")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert CallsSettings.read().model is None


def test_a_model_needs_an_address_or_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLS_MODEL_URL", "http://127.0.0.1:8000/v1/")
    model = CallsSettings.read().model
    assert model is not None
    assert (model.base_url, model.key, model.name) == (
        "http://127.0.0.1:8000/v1",
        None,
        "gpt-4o-mini",
    )
    monkeypatch.delenv("CALLS_MODEL_URL")
    monkeypatch.setenv("CALLS_MODEL_KEY", "sk-secret")
    model = CallsSettings.read().model
    assert model is not None and model.base_url == OPENAI
    assert "sk-secret" not in repr(model)
