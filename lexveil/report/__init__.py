"""The report: sections with their data, tables, figures and prose, and one HTML page."""
