"""The method: texts, embeddings, mechanisms, accounting.

All functions are pure: values in, values out; they read and write no files.
"""
