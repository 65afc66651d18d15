"""HFiles, version 3: the files that HBase loads as they are, written from columns of keys and values without a JVM.

    data blocks, each of whole rows    among them, as they become full: leaf blocks of the index, chunks of the Bloom filter
    intermediate index blocks          for an index of more than two levels only
    root of the index, meta index, file information, what the Bloom filter consists of       HBase reads these when it opens the file
    trailer                            4,096 bytes: where all that is

A file is of one column family. It is neither compressed nor encoded, so it loads into tables that say otherwise too, and their next major
compaction makes it as the others are. The format is that of HBase's reference guide, appendix "HFile format".
"""
