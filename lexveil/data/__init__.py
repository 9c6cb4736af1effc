"""The project's input: corpora and document sets, fetched, checked and converted."""
