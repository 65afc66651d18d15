"""Sizes as people write them."""
