"""Adapters between the engine and the user's data.

``files.privatize_file`` rewrites files, folders, streams and databases (found by ``inputs``),
``memory.privatize`` lists and tables in memory, ``stage.privatize_documents`` the documents of a
stage of the graph.
"""
