"""One self-contained page from all available evidence. It sends no requests."""
