"""The embedded changelog: a folder for each topic with Avro files, the segments, which every reader of Avro can read.

A commit appends a block to the newest segment of each of its topics and then replaces the file of marks, which says how far each topic is committed
and where each producer stands. What lies behind a mark was never committed: readers stop before it, and the next commit cuts it off.
"""
