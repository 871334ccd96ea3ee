"""The lab's own reliability: clients post to its service (`make serve`) over HTTP while its parts are killed.

    clients            post … (no answer) same key again … (503) same key again … 201 or 200 "replayed" background
    workers import files into the same books strikes            SIGKILL: a web worker, the web server, a background
    worker, Valkey, PostgreSQL judge              nothing acknowledged is lost, nothing is applied twice, every import
    is complete (verdict/judge.py)

Two controls are part of the same run: `no-lock` must lose money, and a client with a new key for each try must have a
posting applied twice. A run that kills nothing, or that detects neither, has shown nothing.
"""
