"""Tokenizer, segmentation and rendering of texts. All functions are pure."""
