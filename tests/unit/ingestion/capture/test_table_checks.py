"""A table whose rows change without a row in the binlog is refused, with the remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingestion.capture.table_checks import table_problems
from ingestion.capture.table_facts import Cascade, TableFacts, cascades

PLAIN = TableFacts("shop", "trips", "BASE TABLE", "InnoDB")
DEFINITION = """CREATE TABLE `trips` (
  `id` int(11) NOT NULL COMMENT 'CONSTRAINT `x` FOREIGN KEY (`a`) REFERENCES `b` (`c`) ON DELETE CASCADE',
  `rider` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `rider` (`rider`),
  CONSTRAINT `by_rider` FOREIGN KEY (`rider`) REFERENCES `riders` (`id`) ON DELETE SET NULL ON UPDATE CASCADE,
  CONSTRAINT `b``y` FOREIGN KEY (`rider`, `id`) REFERENCES `people`.`all` (`id`, `n`) ON UPDATE CASCADE,
  CONSTRAINT `odd` FOREIGN KEY (`a)b`, `c, d`) REFERENCES `riders` (`e)`, `f`) ON DELETE CASCADE,
  CONSTRAINT `strict` FOREIGN KEY (`rider`) REFERENCES `riders` (`id`) ON DELETE NO ACTION,
  CONSTRAINT `plain` FOREIGN KEY (`rider`) REFERENCES `riders` (`id`),
  CONSTRAINT `sum` CHECK (`rider` > 0)
) ENGINE=InnoDB"""


def test_a_plain_table_is_captured() -> None:
    assert table_problems(PLAIN, "shop", "trips") == []
    assert table_problems(replace(PLAIN, engine="ROCKSDB"), "shop", "trips") == []


def test_the_keys_by_which_others_change_a_table_are_read_from_its_definition() -> None:
    assert [*cascades(DEFINITION)] == [
        Cascade("`by_rider`", "`riders`", ("ON DELETE SET NULL", "ON UPDATE CASCADE")),
        Cascade("`b``y`", "`people`.`all`", ("ON UPDATE CASCADE",)),
        Cascade("`odd`", "`riders`", ("ON DELETE CASCADE",)),
    ]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (
            replace(PLAIN, cascades=(Cascade("`by_rider`", "`riders`", ("ON DELETE CASCADE",)),)),
            ["`shop.trips`", "`by_rider` to `riders` (ON DELETE CASCADE)", "RESTRICT"],
        ),
        (replace(PLAIN, kind="SYSTEM VERSIONED"), ["WITH SYSTEM VERSIONING", "plug-in `sql`"]),
        (replace(PLAIN, engine="MyISAM"), ["the engine MyISAM", "InnoDB"]),
        (replace(PLAIN, engine="Aria"), ["the engine Aria"]),
        (replace(PLAIN, engine="MEMORY"), ["the engine MEMORY"]),
        (replace(PLAIN, kind="VIEW", engine=""), ["is a view", "the tables that it is made of"]),
        (replace(PLAIN, kind="SEQUENCE"), ["is a sequence"]),
        (replace(PLAIN, table="Trips"), ["is called `shop.Trips` in the binlog"]),
    ],
)
def test_what_is_wrong_with_a_table_is_told_with_what_to_do(facts: TableFacts, words: list[str]) -> None:
    (problem,) = table_problems(facts, "shop", "trips")
    assert [word for word in words if word not in problem] == []
