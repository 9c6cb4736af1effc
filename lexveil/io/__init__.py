"""Reading and writing of text files, databases, models, other artifacts and parameters, and the
processes that execute the work.
"""
