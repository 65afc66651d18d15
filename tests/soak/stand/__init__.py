"""What stands around the instance: the source and the network to it, servers, files, and who receives its messages."""
