"""Types of databases whose values drivers hand over as bytes."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

BINARY_TYPES = (
    sa.LargeBinary,
    sa.BINARY,
    sa.VARBINARY,
    mysql.TINYBLOB,
    mysql.MEDIUMBLOB,
    mysql.LONGBLOB,
    mysql.BIT,
)
