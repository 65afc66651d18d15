"""The bodies of the REST API, one file a subject."""
