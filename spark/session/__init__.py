"""How a check comes to a Spark: Spark Connect everywhere, to a server of our own on this machine or to somebody else's."""
