"""The method: texts, embeddings, mechanisms, accounting.

Values go in and values come out; nothing is read or written.
"""
