"""What commits of captured copies tell: changes that were left out, how long changes took, and which messages of the log were read."""
