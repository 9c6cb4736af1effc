"""HTML report of an experiment: sections with data, tables, figures and prose, rendered as one
page.
"""
