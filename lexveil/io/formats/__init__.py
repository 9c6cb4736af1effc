"""File formats of tables and word vectors that users provide: reading and writing."""
