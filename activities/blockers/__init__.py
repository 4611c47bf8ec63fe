"""Why nothing happens: what is looked up only for people, in the time in which somebody waits for an answer."""
