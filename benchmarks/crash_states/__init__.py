"""Power cuts, simulated: what a file system may hold after one, and what must hold then."""
