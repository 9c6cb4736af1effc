"""Core of the method: text processing, embeddings, privacy mechanisms and privacy accounting.

All functions are pure: values in, values out; they read and write no files.
"""
