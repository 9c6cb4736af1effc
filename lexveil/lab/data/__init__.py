"""Input of a project: corpora and document sets, fetched, checked and converted."""
