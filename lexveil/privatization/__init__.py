"""The privatization engine: count, plan, rewrite, token log; adapters for files and columns."""
