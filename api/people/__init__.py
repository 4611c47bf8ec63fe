"""Authentication and authorisation: API keys, tokens, sessions, permissions, idempotency keys."""
