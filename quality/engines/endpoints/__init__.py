"""One side of a comparison of keys, for each engine that can be one: `quality.engines.scans.endpoint.Endpoint`."""
