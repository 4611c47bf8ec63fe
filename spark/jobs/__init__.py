"""Entry points for people and for `spark-submit`."""
