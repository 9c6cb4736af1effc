"""What is done: every module directly in this package is one stage of dvc.yaml, run as ``python -m
tasks.NAME``.
"""
