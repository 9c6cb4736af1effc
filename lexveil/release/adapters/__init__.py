"""Adapters between the engine and the user's data.

``files.privatize_file`` rewrites files, folders, streams and databases, which ``inputs`` opens.
``memory.privatize`` rewrites lists and tables in memory. ``stage.privatize_documents`` rewrites the
documents of a stage of the graph.
"""
