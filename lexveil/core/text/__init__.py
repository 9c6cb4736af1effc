"""Tokenizer, segmentation and rendering. Values in, values out."""
