"""Every cause why nothing happens, as far as it can be told from what was seen. Pure."""
