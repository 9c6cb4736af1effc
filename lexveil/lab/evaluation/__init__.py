"""Evaluation of rewritten texts: utility for a task, and success of attacks."""
