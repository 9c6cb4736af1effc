"""What near means: words and their vectors."""
