"""Mechanisms and noise: ids, distances and epsilons, never words."""
