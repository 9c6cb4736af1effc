"""The report: values in, tables, figures and one HTML page out. Nothing here opens a file."""
