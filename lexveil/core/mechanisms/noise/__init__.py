"""Sources of randomness: named streams of a seed, and the operating system's entropy."""
