"""The only room that opens a file or a connection."""
