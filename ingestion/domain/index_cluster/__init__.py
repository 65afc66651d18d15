"""A cluster of HBase that keeps the Global Index: its address, and how many requests a second each table may send to it."""
