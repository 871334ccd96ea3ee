"""What a history proves: the laws, the doubts, the judge, and the words of a verdict."""
