"""Rows in, rows out.

``files.privatize_file`` for files, folders, streams and databases (found by ``inputs``),
``memory.privatize`` for lists and tables in memory, ``stage.privatize_documents`` for the stage of
the graph.
"""
