"""Text of people and of sources where it leaves Lakehub for a program that would obey it."""
