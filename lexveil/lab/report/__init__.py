"""The report of a grid: sections with data, tables, figures and prose, rendered as one HTML
page.
"""
