"""The way by hand, forward and back, for the night on which Keeperless itself is down. Pure."""
