"""Text processing: tokenizer, segmentation into words and collocations, and rendering. All
functions are pure.
"""
