"""The clusters of the Global Index, and the fraction of its cluster that each copy has."""
