"""How often one caller may ask."""
