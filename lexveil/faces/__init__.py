"""What users meet: the command line and the service."""
