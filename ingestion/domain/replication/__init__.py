"""A copy that is replicated from another one: which commits it takes, which it takes back, and which files it needs. Names in, decisions out."""
