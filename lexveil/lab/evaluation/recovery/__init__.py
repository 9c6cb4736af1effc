"""Recovery measured: the words that readers name in the runs of a grid, and the texts they find."""
