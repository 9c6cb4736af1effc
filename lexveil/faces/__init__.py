"""User interfaces of the library: the command line and the HTTP service."""
