"""Language models: n-gram models that count words, and SmolLM2."""
