"""Subjects as people look at them: a list, what a version has for columns, what differs between two, and what a proposal would change."""
