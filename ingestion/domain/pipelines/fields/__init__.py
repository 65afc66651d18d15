"""Fields of `pipeline.yaml` that have fields of their own."""
