"""Graph to scores: the numeric stage, the rules, the explanation."""
