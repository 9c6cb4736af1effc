"""Utility and attack evaluation of rewritten text."""
