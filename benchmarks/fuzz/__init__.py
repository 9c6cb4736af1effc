"""Readers, writers and tokenizer against bytes that nobody would write: what must hold of any input, and who tries."""
