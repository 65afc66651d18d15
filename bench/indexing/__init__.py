"""What the Global Index costs: how its files are made and loaded, and how a batch finds its rows by it and by other indexes."""
