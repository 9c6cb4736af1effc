"""Data checks of a release with Great Expectations, and HTML pages ("Data Docs") with their
results.
"""
