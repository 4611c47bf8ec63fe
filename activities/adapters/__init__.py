"""What stands behind `activities.ports`: one module or folder for each port. Adapters know nothing of each other."""
