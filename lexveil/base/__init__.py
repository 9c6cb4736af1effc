"""The ground: errors, types, paths and processes. Nothing here knows what a text is."""
