"""An HTTP service that rewrites texts for programs, each request paid in the ledger before it is answered."""
