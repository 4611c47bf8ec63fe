"""The preflight's catalogue, a module for each part of it; `catalogue.CATALOGUE` has them all."""
