"""Plan, rewrite and log tokens, on arrays: batches of texts in, rewritten texts and token log out."""
