"""Stages of the graph. Each module directly in this package is one stage of dvc.yaml, run as
``python -m tasks.NAME``.
"""
