"""The functions that only compute, which a person's query may use; any other is refused, by its name.

A parser knows many more. What reads a file, a setting or another table, waits, calls out, or runs code has no place here.
"""

from __future__ import annotations

_PARSED_FUNCTIONS = """
And Or Xor Case If Coalesce Nullif Nvl2 Greatest Least Cast TryCast Try Exists IsNan IsInf Typeof Nanvl EqualNull

Count CountIf Sum Avg Min Max Median Mode Stddev StddevPop StddevSamp Variance VariancePop Corr CovarPop CovarSamp
ApproxDistinct ApproxQuantile Quantile PercentileCont PercentileDisc ArgMax ArgMin AnyValue First Last LogicalAnd
LogicalOr Skewness Kurtosis BitwiseAndAgg BitwiseOrAgg BitwiseXorAgg GroupConcat ArrayAgg ArrayUniqueAgg Hll
RegrSlope RegrIntercept RegrR2 RegrCount RegrAvgx RegrAvgy

RowNumber Rank DenseRank PercentRank CumeDist Ntile Lag Lead FirstValue LastValue NthValue

Abs Ceil Floor Round Trunc Sign Sqrt Cbrt Exp Ln Log Pow Pi Sin Cos Tan Asin Acos Atan Atan2 Degrees Radians
SafeDivide WidthBucket BitwiseCount

Lower Upper Length Left Right Substring SubstringIndex Trim Concat ConcatWs Replace Reverse Split SplitPart
StartsWith EndsWith Contains StrPosition RegexpLike RegexpILike RegexpExtract RegexpReplace RegexpFullMatch
RegexpCount Initcap Ascii Chr Unicode Pad Repeat Format Levenshtein MD5 SHA SHA2 Hex Unhex Translate Overlay

Date DateAdd DateSub DateDiff DateTrunc DateBin TimestampTrunc TimestampDiff TimestampAdd TimestampSub DatetimeAdd
DatetimeSub DatetimeDiff DatetimeTrunc Extract Year Quarter Month Week WeekOfYear Day DayOfMonth DayOfWeek
DayOfWeekIso DayOfYear Hour Minute Second LastDay MakeInterval Timestamp Datetime Time StrToDate StrToTime
TimeToStr ToChar UnixToTime TimeToUnix TsOrDsToDate TsOrDsToTimestamp TsOrDsAdd TsOrDsDiff DateFromParts
TimestampFromParts CurrentDate CurrentTimestamp ToDays AddMonths MonthsBetween ConvertTimezone DateStrToDate
TimeStrToDate TimeStrToTime TsOrDsToTime TsOrDsToDatetime UnixDate UnixSeconds UnixMillis
UnixMicros ToNumber Dayname Monthname

Array ArraySize ArrayContains ArrayDistinct ArraySum ArrayMin ArrayMax Unnest Struct StructExtract JSONExtract
JSONExtractScalar JSONExtractArray ParseJSON Explode
"""
"""As sqlglot calls them: conditions and casts, aggregates, windows, numbers, texts, times, lists and JSON."""

_UNPARSED_FUNCTIONS = """
date_part datediff date_diff strftime strptime epoch epoch_ms epoch_us isfinite regexp_matches regexp_full_match
list_contains list_count len bool_and bool_or product fsum kahan_sum favg mad entropy quantile_cont quantile_disc
count_star approx_quantile to_timestamp to_date julianday ifnull iif instr printf gcd lcm even signbit
jaccard hamming damerau_levenshtein jaro_similarity jaro_winkler_similarity hash ord bit_count ltrim rtrim lpad
rpad width_bucket div mod total nvl nullifzero zeroifnull hour_of_day percentile percentile_approx
approx_count_distinct count_if max_by min_by datetime
"""
"""Those that it has no class for, by their names in SQL."""

PARSED_FUNCTIONS = frozenset(_PARSED_FUNCTIONS.split())
UNPARSED_FUNCTIONS = frozenset(_UNPARSED_FUNCTIONS.split())
