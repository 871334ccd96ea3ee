"""What a history proves: the laws, the doubts, the court and its words."""
