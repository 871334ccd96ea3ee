"""Pages of docs/ that are generated from results."""
