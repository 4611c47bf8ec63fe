"""The consistency checks: data in, report out. Importable without Temporal; the local engine also without Spark and Java."""
