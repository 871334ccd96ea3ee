"""The ledger over HTTP: the JSON API, its errors, the health checks, and the web server."""
