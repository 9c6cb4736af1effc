"""Input data of a project: training corpora and document sets, which are fetched, checked and
converted.
"""
