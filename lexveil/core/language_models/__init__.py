"""Language models: Kneser-Ney n-gram models, and SmolLM2."""
