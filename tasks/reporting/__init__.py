"""What the report shows: values in, tables, figures and one page out. Nothing here opens a file."""
