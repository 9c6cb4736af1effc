"""The command line: one module per verb, whose options are its signature."""
