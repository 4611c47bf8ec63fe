"""What a node's machine says of the node's process, and what that means for people. Pure."""
