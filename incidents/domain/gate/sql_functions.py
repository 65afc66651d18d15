"""The functions that read no table: a query may call these. Of any other nobody can say what it reads: a text may name a table,
or be a query, or a function of the database's own may look where it likes.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lakehub.user_sql.sql_text.row_names import HasColumn, RowNames

_PARSED_NAMES = """
Abs Acos Acosh AddMonths And AnyValue ApproxDistinct ApproxPercentileAccumulate ApproxPercentileCombine
ApproxPercentileEstimate ApproxQuantile ApproxQuantiles ApproxTopK ApproxTopKAccumulate ApproxTopKCombine
ApproxTopKEstimate ApproxTopSum ApproximateSimilarity ArgMax ArgMin Array ArrayAgg ArrayAll ArrayAny ArrayAppend
ArrayCompact ArrayConcat ArrayConcatAgg ArrayConstructCompact ArrayContainedBy ArrayContains ArrayContainsAll
ArrayDistinct ArrayExcept ArrayFilter ArrayFirst ArrayInsert ArrayIntersect ArrayLast ArrayMax ArrayMin ArrayOverlaps
ArrayPosition ArrayPrepend ArrayRemove ArrayRemoveAt ArrayReverse ArraySize ArraySlice ArraySort ArraySum
ArrayToString ArrayUnionAgg ArrayUniqueAgg ArraysZip Ascii Asin Asinh Atan Atan2 Atanh Avg Base64DecodeBinary
Base64DecodeString Base64Encode BitLength BitmapBitPosition BitmapBucketNumber BitmapConstructAgg BitmapCount
BitmapOrAgg BitwiseAndAgg BitwiseCount BitwiseOrAgg BitwiseXorAgg Booland Boolnot Boolor BoolxorAgg ByteLength Case
Cast CastToStrType Cbrt Ceil CheckJson CheckXml Chr CityHash64 Coalesce CodePointsToBytes CodePointsToString Collate
Collation Columns CombinedAggFunc CombinedParameterizedAgg Compress Concat ConcatWs ConnectByRoot Contains Convert
ConvertTimezone ConvertToCharset Corr Cos Cosh CosineDistance Cot Coth Count CountIf CovarPop CovarSamp Csc Csch
CumeDist CurrentAccount CurrentAccountName CurrentAvailableRoles CurrentCatalog CurrentClient CurrentDatabase
CurrentDate CurrentDatetime CurrentIpAddress CurrentOrganizationName CurrentOrganizationUser CurrentRegion CurrentRole
CurrentRoleType CurrentSchema CurrentSchemas CurrentSecondaryRoles CurrentSession CurrentStatement CurrentTime
CurrentTimestamp CurrentTimestampLTZ CurrentTimezone CurrentTransaction CurrentUser CurrentUserId CurrentVersion
CurrentWarehouse Date DateAdd DateBin DateDiff DateFromParts DateFromUnixDate DateStrToDate DateSub DateToDateStr
DateToDi DateTrunc Datetime DatetimeAdd DatetimeDiff DatetimeSub DatetimeTrunc Day DayOfMonth DayOfWeek DayOfWeekIso
DayOfYear Dayname Decode DecodeCase DecompressBinary DecompressString Decrypt DecryptRaw Degrees DenseRank DiToDate
DotProduct Elt Encode Encrypt EncryptRaw EndsWith EqualNull EuclideanDistance Exists Exp Explode
ExplodingGenerateSeries Extract Factorial FarmFingerprint First FirstValue Flatten Float64 Floor Format FromBase
FromBase32 FromBase64 FromISO8601Date FromISO8601Timestamp FromISO8601TimestampNanos FromJson GapFill
GenerateDateArray GenerateSeries GenerateTimestampArray Generator GetExtract GetIgnoreCase Getbit Greatest GroupConcat
Grouping GroupingId HashAgg Hex HexDecodeString Hll Host Hour If Initcap Inline Int64 IsArray IsAscii IsInf IsNan
IsNullValue JSONArray JSONArrayAgg JSONArrayAppend JSONArrayContains JSONArrayInsert JSONBContains
JSONBContainsAllTopKeys JSONBContainsAnyTopKeys JSONBContainsTopKey JSONBDeleteAtPath JSONBExists JSONBExtract
JSONBExtractScalar JSONBObjectAgg JSONBPathExists JSONBool JSONCast JSONExists JSONExtract JSONExtractArray
JSONExtractScalar JSONFormat JSONKeys JSONKeysAtDepth JSONObject JSONObjectAgg JSONRemove JSONSet JSONStripNulls
JSONTable JSONType JSONValueArray JarowinklerSimilarity JustifyDays JustifyHours JustifyInterval Kurtosis Lag Last
LastDay LastValue LaxBool LaxFloat64 LaxInt64 LaxString Lead Least Left Length Levenshtein List Ln Localtime
Localtimestamp Log LogicalAnd LogicalOr Lower LowerHex MD5 MD5Digest MD5NumberLower64 MD5NumberUpper64 MakeInterval
ManhattanDistance Map MapCat MapContainsKey MapDelete MapFromEntries MapInsert MapKeys MapPick MapSize MatchAgainst
Max Median Min Minhash MinhashCombine Minute Mode Month Monthname MonthsBetween Nanvl Negative NetFunc NextDay Normal
Normalize NthValue Ntile Nullif NumberToStr Nvl2 ObjectAgg ObjectInsert ObjectTransform OpenJSON Or Overlay Pad
ParameterizedAgg ParseBignumeric ParseDatetime ParseIp ParseJSON ParseNumeric ParseTime ParseUrl PercentRank
PercentileCont PercentileDisc Pi Posexplode PosexplodeOuter Pow PreviousDay Quantile Quarter Radians Rand Randn
Randstr RangeBucket RangeN Rank Reduce RegDomain RegexpCount RegexpExtract RegexpExtractAll RegexpFullMatch
RegexpILike RegexpInstr RegexpLike RegexpReplace RegexpSplit RegexpSubstr RegrAvgx RegrAvgy RegrCount RegrIntercept
RegrR2 RegrSlope RegrSxx RegrSxy RegrSyy RegrValx RegrValy Repeat Replace Reverse Right Rint Round RowNumber
RtrimmedLength SHA SHA1Digest SHA2 SHA2Digest SafeAdd SafeFunc SafeConvertBytesToString SafeDivide SafeMultiply SafeNegate
SafeSubtract Search SearchIp Sec Sech Second Seq1 Seq2 Seq4 Seq8 SessionUser Shuffle Sign Sin Sinh Skewness Soundex
SoundexP123 Space Split SplitPart SplitToTable Sqrt StDistance StPoint Stack StandardHash StarMap StartsWith Stddev
StddevPop StddevSamp StrPosition StrToDate StrToMap StrToTime StrToUnix String StringToArray StripNullValue Strtok
StrtokSplitToTable StrtokToArray Struct StructExtract Stuff Substring SubstringIndex Sum Systimestamp Tan Tanh Time
TimeAdd TimeDiff TimeFromParts TimeSlice TimeStrToDate TimeStrToTime TimeStrToUnix TimeSub TimeToStr TimeToTimeStr
TimeToUnix TimeTrunc Timestamp TimestampAdd TimestampDiff TimestampFromParts TimestampLtzFromParts TimestampSub
TimestampTrunc TimestampTzFromParts ToArray ToBase32 ToBase64 ToBinary ToBoolean ToChar ToCodePoints ToDays ToDecfloat
ToDouble ToMap ToNumber ToVariant Transform Translate Trim Trunc Try TryBase64DecodeBinary TryBase64DecodeString
TryCast TryHexDecodeBinary TryHexDecodeString TryToDecfloat TsOrDiToDi TsOrDsAdd TsOrDsDiff TsOrDsToDate
TsOrDsToDateStr TsOrDsToDatetime TsOrDsToTime TsOrDsToTimestamp Typeof Unhex Unicode Uniform UnixDate UnixMicros
UnixMillis UnixSeconds UnixToStr UnixToTime UnixToTimeStr Unnest Upper UtcDate UtcTime UtcTimestamp Uuid VarMap
Variance VariancePop Week WeekOfYear WeekStart WeightString WidthBucket XMLElement XMLGet XMLTable Xor Year YearOfWeek
YearOfWeekIso Zipf _ExplodeOuter
"""
"""By their classes in sqlglot."""

_UNPARSED_NAMES = """
abs acos add add_months addtime age aggregate ago any_value anylast approx_count_distinct approx_percentile arbitrary
arg_max_null arg_max_nulls_last arg_min_null arg_min_nulls_last argmax argmin array_agg array_aggr array_aggregate
array_append array_apply array_cat array_contains array_cosine_distance array_cosine_similarity array_cross_product
array_distance array_distinct array_dot_product array_extract array_grade_up array_has_any array_indexof
array_inner_product array_join array_length array_lower array_max array_min array_negative_dot_product
array_negative_inner_product array_pop_back array_pop_front array_position array_positions array_prepend
array_push_back array_push_front array_reduce array_remove array_resize array_reverse_sort array_select array_sort
array_to_json array_to_string array_to_string_comma_default array_transform array_unique array_upper array_value
array_where array_zip arrays_overlap ascii asin atan atan2 avgif base64 bin binom bit_and bit_count bit_length bit_or
bit_position bit_xor bitand bitor bitstring bitstring_agg bitxor bool_and bool_or btrim cardinality cast cbrt ceil
ceiling century char char_length character_length charindex choose chr clock_timestamp coalesce collect_array
collect_list collect_set concat_ws conv convert convert_tz corr cos cot count_if count_star countif covar_pop
covar_samp crc32 cume_dist curdate current_localtime curtime damerau_levenshtein datalength date_add date_diff
date_format date_part date_sub datediff datefromparts datename datepart datesub dayname dayofweek dayofyear
days_in_month decade decode degrees dense_rank div divide element_at elt encode ends_with entropy eomonth epoch
epoch_ms epoch_ns epoch_us equi_width_bins era even every exists exp explode_outer favg fdiv field filter find_in_set
first_value flatten floor fmod forall format format_bytes format_type formatreadabledecimalsize formatreadablesize
from_binary from_json_strict from_unixtime from_utc_timestamp fsum gamma gcd gen_random_uuid generate_series
generate_subscripts geomean geometric_mean get_current_timestamp getdate getutcdate glob grade_up greatest
greatest_common_divisor group_concat grouparray groupuniqarray hamming hash hash_agg hex histogram histogram_exact
hour_of_day ifnull iif ilike_escape initcap inline_outer insert instr isdate isfinite isjson isnan isnull isnumeric
isoyear jaccard jaro_similarity json_agg json_array json_array_elements json_array_elements_text json_array_length
json_build_array json_build_object json_contains json_deep_merge json_each json_exists json_extract json_extract_path
json_extract_path_text json_group_array json_group_object json_group_structure json_insert json_keys json_merge_patch
json_merge_patch_diff json_normalize json_object json_object_agg json_object_keys json_pretty json_query json_quote
json_replace json_set json_structure json_to_record json_transform json_tree json_type json_unquote json_valid
json_value jsonb_agg jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array
jsonb_build_object jsonb_each jsonb_extract_path jsonb_extract_path_text jsonb_object_agg jsonb_object_keys jsonb_set
julian julianday justify_days justify_hours justify_interval kahan_sum kurtosis_pop last_day last_value lcm least
least_common_multiple left left_grapheme len length_grapheme lgamma like like_escape list_aggr list_aggregate
list_any_value list_apply list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor list_bool_and
list_bool_or list_cat list_cosine_similarity list_count list_dot_product list_element list_entropy list_extract
list_first list_grade_up list_has_all list_histogram list_indexof list_inner_product list_intersect list_kurtosis
list_kurtosis_pop list_last list_mad list_median list_mode list_negative_dot_product list_negative_inner_product
list_pack list_position list_product list_reduce list_resize list_reverse list_reverse_sort list_select list_sem
list_skewness list_slice list_sort list_stddev_pop list_stddev_samp list_string_agg list_sum list_unique list_var_pop
list_var_samp list_where list_zip ln localtimestamp locate log log10 log2 lower lpad ltrim lttb mad make_date
make_interval make_time make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz makedate maketime
map_concat map_contains map_contains_entry map_contains_value map_entries map_extract map_extract_value
map_from_entries map_keys map_values max_by md5 md5_number md5_number_lower md5_number_upper mean metaphone
microsecond millennium millisecond min_by mismatches mod mode monthname months_between multiply murmur3 named_struct
nanosecond newid next_day nextafter nfc_normalize normalized_interval not_ilike_escape not_like_escape now nth_value
ntile nullif nullifzero num_nonnulls num_nulls nvl nvl2 oct octet_length ord parse_dirname parse_dirpath
parse_filename parse_formatted_bytes parse_json parse_path path_join percent_rank percentile percentile_approx
period_add period_diff pg_typeof pi posexplode_outer position pow power prefix printf product quantile quantileexact
quantiles quote quote_ident quote_literal quote_nullable radians rand random range rank regexp_count regexp_escape
regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table
regexp_substr regr_intercept regr_r2 regr_slope repeat replace reservoir_quantile reverse right right_grapheme round
round_even roundbankers row row_to_json rpad rtrim sec_to_time sem sequence set_bit sha1 sha224 sha256 sha384 sha512
shiftleft shiftright sign signbit sin size slice sort_array soundex space split_part sqrt square stack starts_with
statement_timestamp stddev stddev_pop stddev_samp str_to_date str_to_map strcmp strftime string_agg string_split
string_to_array strip_accents strlen strpos strptime struct_concat struct_contains struct_extract_at struct_has
struct_indexof struct_insert struct_keys struct_pack struct_position struct_update struct_values stuff substr
substring_grapheme substring_index subtime subtract suffix sum_no_overflow sumif sumkahan switch sysdate sysdatetime
sysutcdatetime tan time_format time_to_sec timediff timeofday timestampadd timestampdiff timezone timezone_hour
timezone_minute to_base to_centuries to_char to_date to_decades to_hex to_hours to_json to_jsonb to_microseconds
to_millennia to_milliseconds to_minutes to_months to_number to_quarters to_seconds to_timestamp to_utc_timestamp
to_weeks to_years todate todatetime todatetime64 today todecimal64 tofloat64 toint32 toint64 tomonth tostartofday
tostartofhour tostartofinterval tostartofminute tostartofmonth tostartofweek tostartofyear tostring total touint32
touint64 toyear toyyyymm toyyyymmdd transaction_timestamp transform translate trunc truncate try_cast try_convert
try_strptime try_to_date try_to_decimal try_to_number try_to_timestamp typeof unbin unhex unicode union_extract
union_tag union_value uniq uniqcombined uniqexact uniqhll12 unix_timestamp unnest upper url_decode url_encode utc_date
utc_time utc_timestamp uuid uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7 var_pop var_samp variance
vertex_extract wavg weekday weekofyear weighted_avg width_bucket xxhash64 yearweek yesterday zeroifnull
"""
"""Those that it has no class for in every dialect, by their names in SQL, in small letters."""

_PARSED, _UNPARSED = frozenset(_PARSED_NAMES.split()), frozenset(_UNPARSED_NAMES.split())
_CATALOGS = frozenset({"pg_catalog", "main", "system"})
_AGGREGATES = (exp.ParameterizedAgg, exp.AnonymousAggFunc, exp.CombinedAggFunc, exp.CombinedParameterizedAgg)
"""ClickHouse's, which sqlglot knows by their names: `sumIf`, `quantiles(0.5)`."""


def unknown_functions(tree: exp.Expr) -> Iterator[str]:
    """The names, in small letters, of all that is called and not known to read no table."""
    for node in tree.find_all(exp.Func, exp.Operator, exp.QueryTransform):
        if isinstance(
            node, exp.Operator | exp.QueryTransform
        ):  # an operator of one's own; Hive's TRANSFORM runs a program
            yield "operator" if isinstance(node, exp.Operator) else "transform"
        elif isinstance(node, exp.Func) and not reads_no_table(node):
            yield _name(node)


_CALLS_BY_DOT = frozenset({"postgres", "redshift"})
"""Dialects in which `x.name` is `name(x)` where x has no such column."""


def unknown_row_functions(tree: exp.Expr, dialect: str, has_column: HasColumn) -> Iterator[str]:
    """The names, in small letters, behind a dot that are not known to be columns, nor to be functions that read no table."""
    if dialect not in _CALLS_BY_DOT:
        return
    names = RowNames(tree, has_column)
    for column in names.possible_calls():
        # Redshift reads the inside of a value so, behind the name of a column.
        is_path = dialect == "redshift" and not names.sources_of(column)
        if not is_path and not _is_known_name(column.name):
            yield column.name.lower()
    for dot in tree.find_all(exp.Dot) if dialect == "postgres" else ():
        if isinstance(dot.expression, exp.Identifier) and not _is_known_name(dot.name):
            yield dot.name.lower()


def _is_known_name(name: str) -> bool:
    return reads_no_table(exp.Anonymous(this=name))


def reads_no_table(call: exp.Func) -> bool:
    """By its name, unless a schema is named: what a schema has made may be called like what every database has."""
    schema = call.parent
    if isinstance(schema, exp.Dot) and schema.expression is call and schema.this.name.lower() not in _CATALOGS:
        return False
    if isinstance(call, exp.Anonymous):  # with arguments that another dialect's function of that name has
        return (
            _name(call) in _UNPARSED or getattr(exp.FUNCTION_BY_NAME.get(call.name.upper()), "__name__", "") in _PARSED
        )
    return type(call).__name__ in _PARSED or isinstance(call, _AGGREGATES)


def _name(call: exp.Func) -> str:
    return (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()
