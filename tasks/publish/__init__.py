"""`lexveil release`: what is new in a source is released, checked before it appears, and remembered by keyed hashes."""
