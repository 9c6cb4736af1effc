"""Privacy audits: exact and statistical tests of the guarantee that a mechanism claims."""
