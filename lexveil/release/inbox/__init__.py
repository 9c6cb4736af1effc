"""`lexveil release`: privatizes, checks and archives new documents of a source."""
