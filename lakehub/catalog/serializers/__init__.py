"""How the catalog reads in JSON."""
