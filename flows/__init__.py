"""When things run, and how people ask for them: Prefect and the command line. No logic of the method."""
