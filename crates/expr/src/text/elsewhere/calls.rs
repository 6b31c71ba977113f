//! Names of functions, methods, fields, values and types in other languages, each with the hint for what to write in
//! cembra instead. Names for tensors are in `tensors`. The code in the hints uses the inputs that a test declares:
//! texts `s` and `t`, numbers `x`, `z` and `n`, a condition `c`, an optional `o`, days `d` and `e`, a moment `m`,
//! arrays `a` and `b`.

use super::{Foreign, ForeignUse, of};

const fn call(names: &'static [&'static str], hint: &'static str) -> Foreign {
    of(ForeignUse::Call, names, hint)
}

const fn value(names: &'static [&'static str], hint: &'static str) -> Foreign {
    of(ForeignUse::Value, names, hint)
}

const fn named(names: &'static [&'static str], hint: &'static str) -> Foreign {
    of(ForeignUse::Type, names, hint)
}

const CLOCK: &str = "declare `input today: date`, and give the day with the data: a model cannot read a clock";
const MISSING: &str =
    "write `missing` for no value; `not has(o)` asks whether a value is missing, `has(o)` whether it is present";
const PI: &str = "write `3.141592653589793`";
const CONDITION: &str = "write `if c then 1 else 2`";
const OTHER_ROWS: &str =
    "declare an array, `input history: [f64]`, for the values of other rows: a model sees only one row";

/// The functions, methods and fields of other languages, by name, with hints for what to write instead.
pub(super) const CALLS: &[Foreign] = &[
    // Texts.
    call(
        &["len", "length", "size", "strlen", "charlength", "characterlength"],
        "write `strings.length(s)` for a text, `array.size(a)` for an array",
    ),
    call(&["startswith", "beginswith", "hasprefix"], "write `starts_with(s, \"a\")`"),
    call(&["endswith", "hassuffix"], "write `ends_with(s, \"a\")`"),
    call(
        &["contains", "includes", "strcontains"],
        "write `strings.contains(s, \"a\")` for a text, `x in [1.0, 2.0]` for a list",
    ),
    call(
        &["matches", "regexpmatches", "regexplike", "regexmatch", "regexcontains", "regexptest", "fullmatch", "rlike"],
        "write `contains_regex(s, \"^a+$\")`; without the signs ^ and $, a part of the text may match",
    ),
    call(
        &["substring", "mid", "substringindex", "slice"],
        "write `substr(s, 1, 3)` for positions 1 and 2, which are counted from 0; `array.slice(a, 1, 2)` of an array",
    ),
    call(&["left"], "write `substr(s, 0, 3)` for the first 3 characters"),
    call(&["right"], "write `substr(s, -3)` for the last 3 characters"),
    call(
        &["find", "indexof", "strpos", "instr", "position", "locate", "charindex", "search"],
        "write `strings.find(s, \"a\")`: a position, counted from 0, missing if there is none",
    ),
    call(&["replace", "replaceall", "substitute", "gsub"], "write `strings.replace(s, \"a\", \"b\")`"),
    call(&["regexpreplace", "regexreplace", "resub"], "write `strings.replace_all_regex(s, \"a+\", \"b\")`"),
    call(&["regexpextract", "regexextract", "strextract"], "write `strings.extract_regex(s, \"a(b+)\")`"),
    call(&["touppercase", "toupper", "ucase", "upperascii"], "write `upper(s)`"),
    call(&["tolowercase", "tolower", "lcase", "lowerascii", "casefold"], "write `lower(s)`"),
    call(&["trim", "strtrim", "btrim"], "write `strings.strip(s)`"),
    call(&["ltrim", "trimstart", "trimleft"], "write `strings.lstrip(s)`"),
    call(&["rtrim", "trimend", "trimright"], "write `strings.rstrip(s)`"),
    call(
        &["concat", "concatenate", "strcat", "append", "hstack", "vstack"],
        "write `s + t` for texts, `array.concat(a, b)` for arrays",
    ),
    call(&["textjoin", "concatws", "joinwith"], "write `strings.join_with_separator(\", \", s, t)`"),
    call(
        &["split", "textsplit", "splitpart", "stringsplit"],
        "write `strings.split([s], \",\").0` for the parts of the texts of an array",
    ),
    call(
        &["str", "string", "tostring", "tochar", "repr", "stringify", "text"],
        "write `strings.as_text(x)`, or `strings.printf(\"%.2f\", x)` with two digits after the point",
    ),
    call(
        &["strftime", "dateformat", "formatdate", "date.format", "timestamp.format", "date.strftime", "date.totext"],
        "write `strings.format_date(d, \"%d.%m.%Y\")`, and `strings.format_timestamp(m, \"%H:%M\")`",
    ),
    // Types.
    call(
        &["int", "integer", "toint", "tointeger", "parseint", "bigint", "long", "i32", "i64"],
        "write `to_int64(x)` for a number, `strings.parse_int64(s)` for a text",
    ),
    call(
        &[
            "double",
            "real",
            "tofloat",
            "todouble",
            "parsefloat",
            "number",
            "tonumber",
            "tonumeric",
            "value",
            "decimal",
            "numeric",
            "f32",
            "f64",
        ],
        "write `to_float64(x)` for a number, `strings.parse_float64(s)` for a text",
    ),
    call(
        &["bool", "boolean"],
        "write `x != 0.0` for a number, `s == \"true\"` for a text; for a comparison declare the type: `output big: bool = x > 1.0`",
    ),
    call(
        &["date", "datevalue", "makedate", "datefromparts"],
        "write `date\"2026-01-31\"` for a known day, `date.make(2026, 1, 31)` for numbers, `strings.parse_date(s)` for a text, \
         `to_date(m)` for a timestamp",
    ),
    call(
        &["strptime", "todate", "parsedatetime", "strtodate"],
        "write `strings.parse_date(s, \"%d.%m.%Y\")`, and `strings.parse_timestamp(s, \"%Y-%m-%d %H:%M\")`",
    ),
    call(
        &["timestamp", "datetime", "todatetime", "fromisoformat", "maketimestamp"],
        "write `timestamp\"2026-01-31T10:15:00Z\"` for a known moment, `strings.parse_timestamp(s)` for a text, \
         `to_timestamp(d)` for a date",
    ),
    call(
        &["fromunixtime", "fromtimestamp", "utcfromtimestamp", "timestampseconds", "epochms", "fromepoch"],
        "write `timestamp.from_unix(n, \"s\")` for a number that counts seconds from 1970; the other units are ms, us and ns",
    ),
    call(&["bytes", "bytearray"], "write `strings.encode(s)`"),
    call(
        &["trycast", "safecast", "tryconvert", "tonumberornull"],
        "write `strings.try_parse_float64(s)`, which is missing if the text is not a number",
    ),
    call(&["astype", "convert"], "write `cast(x, f32)`, and `strings.parse_float64(s)` for a text"),
    // Missing values.
    call(&["isnull", "isna", "isnone", "isblank", "ismissing", "isundefined"], "write `not has(o)`"),
    call(&["isnotnull", "notnull", "notna", "isnotna", "isdefined", "defined", "hasvalue"], "write `has(o)`"),
    call(
        &["ifnull", "nvl", "fillna", "ifna", "zeroifnull", "getordefault", "orelse", "orvalue", "nantonum"],
        "write `o ?? 0.0`",
    ),
    call(
        &["iferror", "iserror", "try"],
        "write `o ?? 0.0` for a missing value; before an operator that may fail, test its arguments, as in `if z != 0.0 then x // z else 0.0`: a model cannot catch an error",
    ),
    call(&["nullif"], "write `if x != 0.0 then x else missing`"),
    call(&["dropna"], "write `array.present_values(a)`"),
    // Conditions.
    call(&["if", "iif", "ifelse", "ternary", "cond", "when"], CONDITION),
    call(&["where"], "write `where(c, 1, 2)`, or `if c then 1 else 2`"),
    call(
        &["case", "switch", "ifs", "decode", "casewhen", "select", "choose", "piecewise"],
        "write `if x < 1.0 then 1 else if x < 2.0 then 2 else 3`; to choose by a key, write `lookup(n, {1: \"one\", 2: \"two\"})`",
    ),
    call(&["and"], "write `c and x > 1.0`"),
    call(&["or"], "write `c or x > 1.0`"),
    call(&["not"], "write `not c`"),
    call(&["xor", "logicalxor"], "write `if c then not (x > 1.0) else x > 1.0`"),
    call(&["isin", "inlist", "oneof"], "write `x in [1.0, 2.0]`"),
    call(
        &["between", "isbetween", "inrange"],
        "write `1.0 <= x and x <= 3.0`, or `x in 1.0..3.0`, which leaves the end out",
    ),
    call(
        &["vlookup", "hlookup", "xlookup", "match", "get"],
        "write `lookup(s, {\"CH\": 1.08, \"DE\": 1.19}, 1.0)`; a table may be a file, `table vat: text -> f64 = \"vat.csv\"`",
    ),
    call(
        &["index", "nth", "iloc", "getitem"],
        "write `a[0]` for the first element, `a[array.size(a) - 1]` for the last",
    ),
    // Time.
    call(&["today", "now", "curdate", "currentdate", "currenttimestamp", "sysdate", "utcnow", "clock"], CLOCK),
    call(&["year", "getfullyear", "getyear"], "write `date.year(d)`"),
    call(&["month", "getmonth"], "write `date.month(d)`, which is from 1 to 12"),
    call(&["day", "getdayofmonth", "dayofmonth"], "write `date.day(d)`, which is from 1 to 31"),
    call(&["getdate"], "write `date.day(d)` for the day of a month; declare `input today: date` for the current day"),
    call(
        &["weekday", "dayofweek", "getdayofweek", "getday", "isoweekday", "dow", "dayname"],
        "write `date.weekday(d)`, which is 1 for Monday and 7 for Sunday",
    ),
    call(&["dayofyear", "getdayofyear", "doy"], "write `date.day_of_year(d)`, which is from 1 to 366"),
    call(&["hour", "gethours"], "write `timestamp.hour(m)`"),
    call(&["minute", "getminutes"], "write `timestamp.minute(m)`"),
    call(&["second", "getseconds"], "write `timestamp.second(m)`"),
    call(&["quarter"], "write `date.quarter(d)`"),
    call(&["extract", "datepart", "dt"], "write `date.year(d)`, `date.month(d)` or `date.day(d)`"),
    call(
        &[
            "datediff",
            "datedif",
            "days",
            "daysbetween",
            "timestampdiff",
            "date.diff",
            "date.subtract",
            "timestamp.diff",
        ],
        "write `e - d`: days between dates, a duration between timestamps; in full months or years `date.months_between(d, e)`, \
         `date.years_between(d, e)`",
    ),
    call(
        &[
            "attimezone",
            "totimezone",
            "fromutctimestamp",
            "astimezone",
            "tzconvert",
            "withzonesameinstant",
            "tolocaltime",
        ],
        "write `timestamp.local(m, \"Europe/Zurich\")` for the local time in this zone",
    ),
    call(
        &["toutctimestamp", "tzlocalize", "localize"],
        "write `timestamp.from_local(m, \"Europe/Zurich\", \"earlier\")` for the moment of a local time in this zone",
    ),
    call(
        &["dateadd", "datesub", "adddate", "adddays", "interval", "duration", "timedelta"],
        "write `d + 30` for 30 days, `date.add_months(d, 1)` for a month, `m + 1h` for an hour",
    ),
    call(&["edate", "addmonths", "plusmonths"], "write `date.add_months(d, 1)`"),
    call(&["addyears", "plusyears"], "write `date.add_years(d, 1)`"),
    call(
        &["eomonth", "lastday", "endofmonth"],
        "write `date.end_of_month(d)`; the end of the next month is `date.end_of_month(date.add_months(d, 1))`",
    ),
    call(&["datetrunc", "timestamptrunc"], "write `date.truncate(d, \"month\")`"),
    call(&["monthsbetween"], "write `date.months_between(d, e)`"),
    call(
        &["yearsbetween", "yearfrac", "age"],
        "write `date.years_between(d, e)`, which counts full years from the first to the second",
    ),
    call(
        &["isoweek", "isoweeknum", "weeknum", "weekofyear", "week"],
        "write `date.iso_week(d)`, which is from 1 to 53",
    ),
    call(
        &["epoch", "unixtimestamp", "mktime", "toepoch"],
        "write `d - date\"1970-01-01\"` for days, `duration.seconds(m - timestamp\"1970-01-01T00:00:00Z\")` for seconds",
    ),
    // Numbers.
    call(&["ln", "naturallog"], "write `log(x)`"),
    call(&["ceiling"], "write `ceil(x)`"),
    call(&["truncate", "fix", "rounddown"], "write `trunc(x)`, or `trunc(x, 2)` for two decimal digits"),
    call(&["roundup"], "write `sign(x) * ceil(abs(x))`"),
    call(&["roundhalfeven", "bround", "bankersround"], "write `round_even(x, 2)`"),
    call(&["power"], "write `x ** 2.0`"),
    call(&["square"], "write `x * x`"),
    call(&["cbrt"], "write `sign(x) * abs(x) ** (1.0 / 3.0)`"),
    call(&["arctan2", "atan2f"], "write `atan2(x, z)`, the angle of the point with the coordinates `z` and `x`"),
    call(&["div", "idiv", "quotient", "intdiv"], "write `x // z`, which is rounded down"),
    call(
        &["greatest"],
        "write `max(x, z)`, which is missing if `x` or `z` is; write `max([x, z])` to ignore missing values",
    ),
    call(
        &["least"],
        "write `min(x, z)`, which is missing if `x` or `z` is; write `min([x, z])` to ignore missing values",
    ),
    call(&["clip", "bound"], "write `clamp(x, 0.0, 1.0)`"),
    call(
        &["normcdf", "norm.cdf", "pnorm", "normsdist", "normdist", "normaldist", "normalcdf", "ndtr"],
        "write `normal_distribution_cdf(x)`, or `normal_distribution_cdf((x - z) / 2.0)` for the mean `z` and the standard deviation 2",
    ),
    call(
        &["normppf", "norm.ppf", "qnorm", "normsinv", "norminv", "probit", "ndtri"],
        "write `normal_distribution_inverse_cdf(x)`",
    ),
    call(&["isnan"], "write `is_nan(x)`, and `not has(o)` for a missing value"),
    call(&["isinf"], "write `is_inf(x)`"),
    call(&["isfinite"], "write `is_finite(x)`"),
    call(&["isclose", "allclose"], "write `abs(x - z) < 1e-9`, or `is_close(x, z)`"),
    call(&["pi"], PI),
    call(
        &["rand", "randn", "random", "randbetween", "uuid", "normal", "uniform"],
        "declare `input noise: f64`, and give random numbers with the data: the same inputs always give the same outputs",
    ),
    // Arrays, and rows.
    call(&["avg", "average", "nanmean"], "write `mean(a)` for an array, `(x + z) / 2.0` for two values"),
    call(&["nansum"], "write `sum(a)`, which leaves missing elements out"),
    call(&["sumif", "sumifs"], "write `sum(array.select(a, a > 1.0))`"),
    call(&["countif", "countifs"], "write `count(a > 1.0)`"),
    call(&["averageif", "averageifs"], "write `mean(array.select(a, a > 1.0))`"),
    call(
        &["sumproduct", "dot", "inner", "matmul"],
        "write `sum(a * b)` for arrays; products of tensors are written by labels",
    ),
    call(&["norm"], "write `sqrt(sum(a * a))`"),
    call(&["stddev", "stdev", "stddevpop"], "write `std(a)`"),
    call(&["variance", "varpop"], "write `math.var(a)`"),
    call(&["corr", "correl", "corrcoef"], "write `math.correlation(a, b)`"),
    call(&["percentile", "percentilecont"], "write `quantile(a, 0.5)`"),
    call(&["shape", "ndim"], "write `array.size(a)` for the number of elements: an array has only one axis"),
    call(
        &["sort", "sorted", "sortvalues", "orderby"],
        "write `array.sort(a)`; for the order of another array `array.take(b, array.inverse_mapping(array.ordinal_rank(a)))`",
    ),
    call(&["argsort"], "write `array.inverse_mapping(array.ordinal_rank(a))`"),
    call(&["rank", "denserank"], "write `array.dense_rank(a)` for an array"),
    call(&["unique", "distinct"], "write `array.unique(a)`"),
    call(&["cumsum", "runningsum", "runningtotal"], "write `math.cum_sum(a)`"),
    call(&["cumprod", "cumproduct"], "write `math.cum_prod(a)`"),
    call(
        &["lag", "shift"],
        "write `array.shift(a, 1)` for an array: a model sees one row of a table, and none before it",
    ),
    call(&["lead"], "write `array.shift(a, -1)` for an array: a model sees one row of a table, and none after it"),
    call(&["diff"], "write `a - array.shift(a, 1)` for an array: a model sees one row of a table, and none before it"),
    call(
        &["rolling", "rollingmean", "movingaverage", "movavg", "sma"],
        "write `array.rolling_mean(a, 3)` for an array, or `array.rolling_sum(a, 3)`: a model sees one row of a table, and none before it",
    ),
    call(&["rollingsum", "movingsum"], "write `array.rolling_sum(a, 3)`"),
    call(&["rollingmin", "movingmin"], "write `array.rolling_min(a, 3)`"),
    call(&["rollingmax", "movingmax"], "write `array.rolling_max(a, 3)`"),
    call(&["groupby"], "write `sum(a, into=edge.group_by(b))`: sums of the elements of `a`, one for each value of `b`"),
    call(
        &["map", "apply", "transform", "vmap", "vectorize", "applymap"],
        "write `a * 2.0`, which is applied to each element, or `core.map(fn(v) = v * 2.0, a)`",
    ),
    call(&["filter", "query", "compress"], "write `array.select(a, a > 1.0)`"),
    call(&["exists", "some"], "write `any(a > 1.0)`"),
    call(&["every"], "write `all(a > 1.0)`"),
    call(
        &["scan", "foriloop", "whileloop"],
        "write `core.while_loop(0, fn(i) = i < 10, fn(i) = i + 1)`, or `seq.reduce(math.add, seq.range(10), 0i64)`",
    ),
    call(&["array", "asarray", "list", "series"], "write `[1.0, 2.0]`"),
    call(
        &["arange", "linspace", "range"],
        "write `[0, 1, 2]` for an array, or `seq.range(10)` for the sequence of a loop",
    ),
    call(&["jit", "eval", "compile"], "leave this out: a model is compiled as a whole"),
    call(
        &["grad", "valueandgrad", "hessian"],
        "declare a tensor, `input w: tensor[f64, 1]`: only tensors have gradients",
    ),
    call(&["rownumber", "rownum", "ntile", "firstvalue", "lastvalue"], OTHER_ROWS),
];

/// The names that stand for values in other languages, such as `null`.
pub(super) const VALUES: &[Foreign] = &[
    value(&["null", "none", "nil", "undefined", "nothing", "nat"], MISSING),
    value(&["pi"], PI),
    value(&["nan"], "write `nan`; `is_nan(x)` tests for it"),
    value(&["inf", "infinity", "ninf"], "write `inf`, or `-inf`"),
    value(&["newaxis"], "use a tensor for several axes: an array has only one"),
    value(&["today", "now", "curdate", "currentdate", "currenttimestamp", "sysdate"], CLOCK),
];

/// The names of types in other languages, such as `string`.
pub(super) const TYPES: &[Foreign] = &[
    named(&["float", "double", "number", "real", "decimal", "numeric"], "did you mean `f64`?"),
    named(&["int", "integer", "long", "bigint"], "did you mean `i64`?"),
    named(&["uint", "ulong"], "did you mean `u64`?"),
    named(&["string", "str", "varchar", "char", "character"], "did you mean `text`?"),
    named(&["datetime", "time"], "did you mean `timestamp`?"),
    named(&["binary", "blob", "bytea"], "did you mean `bytes`?"),
    named(&["optional", "option", "nullable"], "write `f64?` for a number that may be missing"),
    named(&["list", "vec", "vector", "array", "series"], "write `[f64]` for an array of floats"),
    named(&["matrix", "ndarray", "dataframe"], "write `tensor[f64, 2]` for a tensor with two axes"),
];
