"""Writes sentences for the packaged bank with a public language model, and chooses among them."""
