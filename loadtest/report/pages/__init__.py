"""Pages of docs/ that are made from results."""
