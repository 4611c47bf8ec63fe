"""What is read of a cluster, and changes nothing: one look at everything, and each of its parts."""
