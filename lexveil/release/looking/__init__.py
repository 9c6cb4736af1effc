"""Results that are shown and never published: ``inspect.inspect`` predicts a release,
``preview.preview`` shows rows.
"""
