"""A client for models behind OpenAI-compatible endpoints."""
