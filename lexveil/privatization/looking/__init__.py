"""What is looked at and never published: ``inspect.inspect`` foretells a release,
``preview.preview`` shows rows.
"""
