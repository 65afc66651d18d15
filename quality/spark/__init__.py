"""What runs in a Spark driver: no Django here, not even indirectly."""
