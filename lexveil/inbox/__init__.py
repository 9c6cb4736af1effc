"""`lexveil release`: new documents of a source are privatized, checked and archived."""
