"""The faces of the library: the command line and the service."""
