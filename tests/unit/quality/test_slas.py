"""The table of tiers, and what a dataset may change of it."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from fractions import Fraction

import pytest

from quality.domain.slas import TIERS, BadOverride, Slas, columns_not_compared, format_sla, slas_for_tier


def test_a_higher_tier_never_promises_less() -> None:
    for higher, lower in zip(TIERS, list(TIERS)[1:], strict=False):
        better, worse = TIERS[higher], TIERS[lower]
        assert better.completeness >= worse.completeness
        assert better.consistency >= worse.consistency
        for name in ("freshness", "duplicates", "sustain", "cadence", "rerun_base", "rerun_cap", "debounce", "grace"):
            assert getattr(better, name) <= getattr(worse, name), name


def test_a_dataset_overrides_what_it_names() -> None:
    slas = slas_for_tier(2, {"duplicates": "0%", "sustain": "10m"}, freshness=timedelta(hours=30))
    assert (slas.duplicates, slas.sustain, slas.freshness) == (Fraction(0), timedelta(minutes=10), timedelta(hours=30))
    assert slas.completeness == TIERS[2].completeness


@pytest.mark.parametrize("name", [field.name for field in fields(Slas)])
@pytest.mark.parametrize("tier", TIERS)
def test_every_sla_may_be_overridden_by_what_is_shown(tier: int, name: str) -> None:
    value = getattr(TIERS[tier], name)
    assert slas_for_tier(5 - tier, {name: format_sla(value)}) == slas_for_tier(5 - tier).__class__(
        **{**vars(TIERS[5 - tier]), name: value}
    )


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"sustin": "1m"}, "There is no SLA `sustin`. Did you mean `sustain`?"),
        ({"sustain": "5"}, "sustain='5' is not a duration: write 30m, 2h or 1d."),
        ({"duplicates": "0.1"}, "is not a share: write it in percent"),
        ({"duplicates": "101%"}, "is not a share"),
        ({"cadence": "0s"}, "cadence='0s' is too short: write 30s or longer."),
        ({"freshness": "999999999d"}, "freshness='999999999d' is too long: write 366d or shorter."),
        ({"sustain": "367d"}, "sustain='367d' is too long: write 366d or shorter."),
        ({"rerun_base": "29s"}, "rerun_base='29s' is too short"),
        ({"rerun_cap": "1ms"}, "rerun_cap='1ms' is too short"),
        ({"severity": "pag"}, "Did you mean `page`?"),
    ],
)
def test_a_bad_override_is_refused_by_name(overrides: dict[str, str], says: str) -> None:
    with pytest.raises(BadOverride) as caught:
        slas_for_tier(2, overrides)
    assert says in str(caught.value)


def test_reruns_may_follow_each_other_every_half_minute() -> None:
    half = timedelta(seconds=30)
    slas = slas_for_tier(0, {"cadence": "30s", "rerun_base": "30s", "rerun_cap": "30s"})
    assert (slas.cadence, slas.rerun_base, slas.rerun_cap) == (half, half, half)


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(BadOverride, match=r"There is no tier 9: choose 0 \(highest\) to 5"):
        slas_for_tier(9)


def test_columns_that_are_not_compared_are_a_text_or_a_list() -> None:
    assert columns_not_compared({}) == ()
    for given in ("loaded_at, host,", ["loaded_at", " host "]):
        assert columns_not_compared({"not_compared": given}) == ("loaded_at", "host")
        assert slas_for_tier(1, {"not_compared": given}) == slas_for_tier(1)
    for wrong in (5, ["loaded_at", 5], {"loaded_at": 1}):
        with pytest.raises(BadOverride, match=r"not_compared=.* cannot be read: write the names of columns"):
            columns_not_compared({"not_compared": wrong})
