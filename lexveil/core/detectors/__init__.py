"""Detectors, which find names, numbers and other sensitive spans in texts. No privacy claim relies
on what they find.
"""
