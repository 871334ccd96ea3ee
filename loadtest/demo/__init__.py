"""`make demo` and `make serve`."""

#: where `make serve` listens, unless it is told another port
SERVE_PORT = 8000
