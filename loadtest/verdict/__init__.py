"""What a history is worth: the laws, the doubts, the words."""
