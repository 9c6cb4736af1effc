"""Connection of the rewriting engine to the user's data: files, tables in memory, or the documents
of a project.

``files.privatize_file`` rewrites files, folders, streams and databases, which ``inputs`` opens.
``memory.privatize`` rewrites lists and tables in memory. ``stage.privatize_documents`` rewrites the
project's documents, in the pipeline.
"""
