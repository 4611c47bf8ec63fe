"""What only ZooKeeper to KRaft does: provision controllers, rehearse the copy, cut ZooKeeper off, and go back."""
