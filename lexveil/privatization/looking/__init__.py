"""Inspect, preview, changes of tokens: what an operator looks at, and never publishes."""
