"""What makes a rewrite a release: two passes, the charge to the ledger, the record."""
