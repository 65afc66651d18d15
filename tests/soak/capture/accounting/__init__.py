"""Is every change accounted for: in the binlog, the changelog, the history, the lake and the error table?"""
