"""Reading and writing: files of texts, databases, models and other artifacts, parameters, and the
processes that work on them.
"""
