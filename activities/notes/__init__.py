"""Notes of how machines and metadata were set when a migration first found them well, and what has changed since."""
