"""How much of a source is used at once, by whom."""
