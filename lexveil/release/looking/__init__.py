"""Results that are shown to the user and never published: ``inspect.inspect`` predicts the effects
of a release, and ``preview.preview`` shows rewritten rows.
"""
