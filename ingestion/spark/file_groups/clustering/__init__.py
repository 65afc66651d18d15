"""Small files of a table put together: which are chosen, their rows written beside the table, and the new files put in their place.

Rows keep the commit that wrote them, so for whoever reads increments nothing has changed.
"""
