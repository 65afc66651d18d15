"""The index that the jobs of each copy use, and the change to another one."""
