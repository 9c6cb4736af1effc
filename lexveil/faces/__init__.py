"""User interfaces of the library: the command line and the service."""
