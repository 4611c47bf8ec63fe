"""How our programs start and end: logging and leaving. What every console script shares, and nothing else."""
