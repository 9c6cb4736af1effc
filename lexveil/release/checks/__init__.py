"""The expectations on a release, and the data docs that show whether they hold."""
