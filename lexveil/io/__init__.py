"""Reading and writing of files of texts, databases, models, other artifacts and parameters, and the
processes that do the work.
"""
