"""What Lakehub is built from: its locks, and a comparison of what is installed with known weaknesses."""
