"""The pages that anybody may open: what a lost update is, what was found out, and what to choose. No login."""
