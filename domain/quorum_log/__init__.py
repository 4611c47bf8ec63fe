"""The quorum's log of metadata, read from its bytes. Pure."""
