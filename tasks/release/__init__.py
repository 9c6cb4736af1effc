"""A user's own text goes out: what `lexveil privatize` and the Python call do. No stages of the graph."""
