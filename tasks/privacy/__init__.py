"""What noise is and how a budget is spent: ids, distances and epsilons, never words."""
