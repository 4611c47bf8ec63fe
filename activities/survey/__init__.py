"""What is looked at before the start alone, and by a plan: the preflight judges it."""
