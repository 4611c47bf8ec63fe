"""One module for each thing that has an address. Routes translate; what they call decides."""
