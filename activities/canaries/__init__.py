"""What clients do, tried at one broker under reserved names, and removed again."""
