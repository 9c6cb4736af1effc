"""File formats: reading and writing users' tables and word vectors."""
