"""HTTP service that rewrites texts for programs and charges each request before it answers."""
