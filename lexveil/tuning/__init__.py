"""Choice of parameters: tuning on labelled words, recommendation among evaluated runs."""
