"""Who asks, and what they may do: identification, permissions, keys, sessions."""
