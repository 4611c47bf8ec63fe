"""`make setup`: from a bare Python to everything that `make demo` and `make test` need. Runs on the standard library alone."""
