"""The report of a grid of runs: sections with data, tables, figures and prose, rendered as one HTML
page.
"""
