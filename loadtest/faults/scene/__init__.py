"""Where a hazard strikes: the servers, the proxy, the moment."""
