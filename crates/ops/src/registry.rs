//! The registry: the one list of operators. It gives each a dense id, finds them by name or alias, and is the vocabulary
//! of the text language.

use crate::Effects;
use crate::cast::cast_operator;
use crate::definition::{Meaning, OpDef, Structure};
use crate::resolution::{Key, Resolutions};
use crate::typing::{Argument, Resolved, TypeFault};
use crate::user::refused;
use crate::{
    annotation, array, bitwise, calendar, cast, comparison, declared, derived, dict, external, function, logic, math,
    named_tuple, presence, qtype, random, sequence, shorthand, strings, structure, tensor, tuple, whole_tensors,
};
use cembra_expr::{Callable, Vocabulary};
use cembra_runtime::Scalar;
use cembra_value::{Error, near_names};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::OnceLock;

/// An operator of one registry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpId(u16);

impl OpId {
    /// The operator's position in the registry.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

macro_rules! operators {
    ($($id:ident = $def:path;)*) => {
        static STANDARD: &[&OpDef] = &[$(&$def),*];

        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "only counts the list")]
        enum Position { $($id),* }

        /// Ids of the standard operators.
        pub mod id {
            use super::{OpId, Position};
            $(
                #[doc = concat!("`", stringify!($def), "`.")]
                pub const $id: OpId = OpId(Position::$id as u16);
            )*
        }
    };
}

operators! {
    ADD = math::arithmetic::ADD;
    SUBTRACT = math::arithmetic::SUBTRACT;
    MULTIPLY = math::arithmetic::MULTIPLY;
    NEG = math::arithmetic::NEG;
    ABS = math::arithmetic::ABS;
    POS = math::arithmetic::POS;
    FLOAT = math::arithmetic::FLOAT;
    ADD4 = math::arithmetic::ADD4;
    SIGN = math::arithmetic::SIGN;
    DIVIDE = math::division::DIVIDE;
    FLOORDIV = math::division::FLOORDIV;
    MOD = math::division::MOD;
    FMOD = math::division::FMOD;
    MAXIMUM = math::extremes::MAXIMUM;
    MINIMUM = math::extremes::MINIMUM;
    FLOOR = math::rounding::FLOOR;
    CEIL = math::rounding::CEIL;
    ROUND = math::rounding::ROUND;
    SQRT = math::power::SQRT;
    POW = math::power::POW;
    POW_HALF = math::power::POW_HALF;
    EXP = math::exponential::EXP;
    EXPM1 = math::exponential::EXPM1;
    LOG = math::exponential::LOG;
    LOG1P = math::exponential::LOG1P;
    LOG2 = math::exponential::LOG2;
    LOG10 = math::exponential::LOG10;
    SIGMOID = math::logistic::SIGMOID;
    LOGIT = math::logistic::LOGIT;
    LOG_SIGMOID = math::logistic::LOG_SIGMOID;
    SYMLOG1P = math::logistic::SYMLOG1P;
    SIN = math::trigonometric::SIN;
    COS = math::trigonometric::COS;
    SINH = math::trigonometric::SINH;
    TANH = math::trigonometric::TANH;
    ATAN = math::trigonometric::ATAN;
    NORMAL_INVERSE_CDF = math::quantile::NORMAL_INVERSE_CDF;
    T_INVERSE_CDF = math::quantile::T_INVERSE_CDF;
    BETA_INVERSE_CDF = math::quantile::BETA_INVERSE_CDF;
    IS_NAN = math::classify::IS_NAN;
    IS_INF = math::classify::IS_INF;
    IS_FINITE = math::classify::IS_FINITE;
    IS_CLOSE = math::closeness::IS_CLOSE;
    BITWISE_AND = bitwise::BITWISE_AND;
    BITWISE_OR = bitwise::BITWISE_OR;
    BITWISE_XOR = bitwise::BITWISE_XOR;
    INVERT = bitwise::INVERT;
    COUNT_BITS = bitwise::COUNT;
    EQUAL = comparison::EQUAL;
    NOT_EQUAL = comparison::NOT_EQUAL;
    LESS = comparison::LESS;
    LESS_EQUAL = comparison::LESS_EQUAL;
    GREATER = comparison::GREATER;
    GREATER_EQUAL = comparison::GREATER_EQUAL;
    BOOL_EQUAL = comparison::BOOL_EQUAL;
    BOOL_NOT_EQUAL = comparison::BOOL_NOT_EQUAL;
    BOOL_LESS = comparison::BOOL_LESS;
    BOOL_LESS_EQUAL = comparison::BOOL_LESS_EQUAL;
    BOOL_GREATER = comparison::BOOL_GREATER;
    BOOL_GREATER_EQUAL = comparison::BOOL_GREATER_EQUAL;
    LOGICAL_AND = logic::LOGICAL_AND;
    LOGICAL_OR = logic::LOGICAL_OR;
    LOGICAL_NOT = logic::LOGICAL_NOT;
    LOGICAL_IF = logic::LOGICAL_IF;
    AND = logic::AND;
    OR = logic::OR;
    NOT = logic::NOT;
    SHORT_WHERE = logic::SHORT_WHERE;
    HAS = presence::HAS;
    PRESENCE_NOT = presence::PRESENCE_NOT;
    PRESENCE_AND = presence::PRESENCE_AND;
    PRESENCE_OR = presence::PRESENCE_OR;
    PRESENCE_AND_OR = presence::PRESENCE_AND_OR;
    TO_OPTIONAL = presence::TO_OPTIONAL;
    GET_OPTIONAL_VALUE = presence::GET_OPTIONAL_VALUE;
    WHERE = presence::WHERE;
    WITH_ASSERTION = presence::WITH_ASSERTION;
    ANY = presence::ANY;
    ALL = presence::ALL;
    TO_BOOLEAN = cast::TO_BOOLEAN;
    TO_INT32 = cast::TO_INT32;
    TO_INT64 = cast::TO_INT64;
    TO_UINT64 = cast::TO_UINT64;
    TO_FLOAT32 = cast::TO_FLOAT32;
    TO_FLOAT64 = cast::TO_FLOAT64;
    TO_WEAK_FLOAT = cast::TO_WEAK_FLOAT;
    TO_DATE = calendar::TO_DATE;
    TO_TIMESTAMP = calendar::TO_TIMESTAMP;
    CAST = cast::CAST;
    CAST_VALUES = cast::CAST_VALUES;
    MAKE_TUPLE = structure::MAKE_TUPLE;
    GET_NTH = structure::GET_NTH;
    MAKE_NAMED = named_tuple::MAKE;
    GET_FIELD = named_tuple::GET_FIELD;
    UNION = named_tuple::UNION;
    GET_FIRST = tuple::GET_FIRST;
    GET_SECOND = tuple::GET_SECOND;
    SLICE_TUPLE = tuple::SLICE_TUPLE;
    CONCAT_TUPLES = tuple::CONCAT_TUPLES;
    ZIP = tuple::ZIP;
    COALESCE_UNITS = tuple::COALESCE_UNITS;
    LAMBDA = structure::LAMBDA;
    NAMED = structure::NAMED;
    APPLY = function::APPLY;
    APPLY_VARARGS = function::APPLY_VARARGS;
    MAP = function::MAP;
    MAP_TUPLE = function::MAP_TUPLE;
    REDUCE_TUPLE = function::REDUCE_TUPLE;
    WHILE_LOOP = function::WHILE_LOOP;
    SEQ_RANGE = sequence::RANGE;
    SEQ_RANGE_SIZE = sequence::RANGE_SIZE;
    SEQ_MAKE = sequence::MAKE;
    SEQ_REPEAT = sequence::REPEAT;
    SEQ_ZIP = sequence::ZIP;
    SEQ_MAP = sequence::MAP;
    SEQ_REDUCE = sequence::REDUCE;
    SEQ_SLICE = sequence::slice::SLICE;
    SEQ_SIZE = sequence::SIZE;
    SEQ_AT = sequence::AT;
    SEQ_INDEX = sequence::INDEX;
    SEQ_ANY = sequence::ANY;
    SEQ_ALL = sequence::ALL;
    SEQ_ALL_EQUAL = sequence::slice::ALL_EQUAL;
    IDENTITY = structure::IDENTITY;
    DEFAULT_IF_UNSPECIFIED = structure::DEFAULT_IF_UNSPECIFIED;
    ZEROS_LIKE = structure::ZEROS_LIKE;
    ONES_LIKE = structure::ONES_LIKE;
    SHAPE_OF = structure::SHAPE_OF;
    CONST_WITH_SHAPE = structure::CONST_WITH_SHAPE;
    EMPTY_LIKE = structure::EMPTY_LIKE;
    CONST_LIKE = structure::CONST_LIKE;
    BROADCAST_LIKE = structure::BROADCAST_LIKE;
    QTYPE_OF = qtype::QTYPE_OF;
    SCALAR_QTYPE_OF = qtype::SCALAR_QTYPE_OF;
    GET_SCALAR_QTYPE = qtype::GET_SCALAR_QTYPE;
    GET_SHAPE_QTYPE = qtype::GET_SHAPE_QTYPE;
    GET_VALUE_QTYPE = qtype::GET_VALUE_QTYPE;
    GET_PRESENCE_QTYPE = qtype::GET_PRESENCE_QTYPE;
    OPTIONAL_LIKE_QTYPE = qtype::OPTIONAL_LIKE_QTYPE;
    GET_FLOAT_QTYPE = qtype::GET_FLOAT_QTYPE;
    DECAY_DERIVED_QTYPE = qtype::DECAY_DERIVED_QTYPE;
    COMMON_QTYPE = qtype::COMMON_QTYPE;
    BROADCAST_QTYPE_LIKE = qtype::BROADCAST_QTYPE_LIKE;
    WITH_VALUE_QTYPE = qtype::WITH_VALUE_QTYPE;
    CONDITIONAL_QTYPE = qtype::CONDITIONAL_QTYPE;
    MAKE_TUPLE_QTYPE = qtype::MAKE_TUPLE_QTYPE;
    MAKE_SEQUENCE_QTYPE = qtype::MAKE_SEQUENCE_QTYPE;
    SLICE_TUPLE_QTYPE = qtype::SLICE_TUPLE_QTYPE;
    GET_FIELD_QTYPE = qtype::GET_FIELD_QTYPE;
    GET_FIELD_QTYPES = qtype::GET_FIELD_QTYPES;
    GET_FIELD_COUNT = qtype::GET_FIELD_COUNT;
    GET_FIELD_NAMES = qtype::GET_FIELD_NAMES;
    IS_SCALAR_QTYPE = qtype::IS_SCALAR;
    IS_OPTIONAL_QTYPE = qtype::IS_OPTIONAL;
    IS_INTEGRAL_SCALAR_QTYPE = qtype::IS_INTEGRAL_SCALAR;
    IS_FLOATING_POINT_SCALAR_QTYPE = qtype::IS_FLOATING_POINT_SCALAR;
    IS_NUMERIC_SCALAR_QTYPE = qtype::IS_NUMERIC_SCALAR;
    IS_INTEGRAL_QTYPE = qtype::IS_INTEGRAL;
    IS_FLOATING_POINT_QTYPE = qtype::IS_FLOATING_POINT;
    IS_NUMERIC_QTYPE = qtype::IS_NUMERIC;
    IS_TUPLE_QTYPE = qtype::IS_TUPLE;
    IS_NAMEDTUPLE_QTYPE = qtype::IS_NAMEDTUPLE;
    IS_DERIVED_QTYPE = qtype::IS_DERIVED;
    IS_SHAPE_QTYPE = qtype::IS_SHAPE;
    IS_SEQUENCE_QTYPE = qtype::IS_SEQUENCE;
    GET_CHILD_SHAPE_QTYPE = qtype::arrays::GET_CHILD_SHAPE_QTYPE;
    GET_PARENT_SHAPE_QTYPE = qtype::arrays::GET_PARENT_SHAPE_QTYPE;
    GET_EDGE_QTYPE = qtype::arrays::GET_EDGE_QTYPE;
    GET_EDGE_TO_SCALAR_QTYPE = qtype::arrays::GET_EDGE_TO_SCALAR_QTYPE;
    IS_EDGE_QTYPE = qtype::arrays::IS_EDGE;
    IS_EDGE_TO_SCALAR_QTYPE = qtype::arrays::IS_EDGE_TO_SCALAR;
    IS_ARRAY_QTYPE = qtype::arrays::IS_ARRAY;
    IS_DENSE_ARRAY_QTYPE = qtype::arrays::IS_DENSE_ARRAY;
    IS_ARRAY_SHAPE_QTYPE = qtype::arrays::IS_ARRAY_SHAPE;
    UPCAST = derived::UPCAST;
    DOWNCAST = derived::DOWNCAST;
    DICT_GET = dict::GET;
    DICT_CONTAINS = dict::CONTAINS;
    DICT_LOOKUP = dict::LOOKUP;
    DICT_KEYS = dict::KEYS;
    DICT_VALUES = dict::VALUES;
    DICT_TABLE = dict::TABLE;
    DICT_MAKE = dict::MAKE;
    DICT_ROWS = dict::ROWS;
    DICT_RANGES = dict::RANGES;
    DICT_SEGMENT = dict::SEGMENT;
    DICT_CHECKED = dict::CHECKED;
    IN = dict::IN;
    IN_RANGE = dict::IN_RANGE;
    IN_VALUE = dict::IN_VALUE;
    EXPORT = annotation::EXPORT;
    EXPORT_VALUE = annotation::EXPORT_VALUE;
    ANNOTATION_NAME = annotation::NAME;
    ANNOTATION_QTYPE = annotation::QTYPE;
    SOURCE_LOCATION = annotation::SOURCE_LOCATION;
    DECLARED = declared::DECLARED;
    DECLARED_OPERAND = declared::DECLARED_OPERAND;
    EXTERN = external::EXTERN;
    STRINGS_LENGTH = strings::slice::LENGTH;
    STRINGS_SUBSTR = strings::slice::SUBSTR;
    STRINGS_FIND = strings::search::FIND;
    STRINGS_RFIND = strings::search::RFIND;
    STRINGS_CONTAINS = strings::search::CONTAINS;
    STRINGS_STARTS_WITH = strings::search::STARTS_WITH;
    STRINGS_ENDS_WITH = strings::search::ENDS_WITH;
    PLUS = shorthand::PLUS;
    SHORT_ROUND = shorthand::ROUND;
    SHORT_CEIL = math::decimal::CEIL;
    SHORT_FLOOR = math::decimal::FLOOR;
    SHORT_TRUNC = math::decimal::SHORT_TRUNC;
    DECIMAL = math::decimal::DECIMAL;
    ROUND_DECIMAL = math::decimal::ROUND_DECIMAL;
    ROUND_EVEN = math::decimal::ROUND_EVEN;
    CLAMP = shorthand::CLAMP;
    COALESCE = shorthand::COALESCE;
    STRINGS_COUNT = strings::search::COUNT;
    STRINGS_UPPER = strings::case::UPPER;
    STRINGS_LOWER = strings::case::LOWER;
    STRINGS_STRIP = strings::strip::STRIP;
    STRINGS_LSTRIP = strings::strip::LSTRIP;
    STRINGS_RSTRIP = strings::strip::RSTRIP;
    STRINGS_JOIN = strings::join::JOIN;
    STRINGS_JOIN_WITH_SEPARATOR = strings::join::JOIN_WITH_SEPARATOR;
    STRINGS_JOIN_FEW = strings::join::JOIN_FEW;
    STRINGS_REPLACE = strings::replace::REPLACE;
    STRINGS_AS_TEXT = strings::convert::AS_TEXT;
    STRINGS_ENCODE = strings::convert::ENCODE;
    STRINGS_DECODE = strings::convert::DECODE;
    STRINGS_STATIC_DECODE = strings::convert::STATIC_DECODE;
    STRINGS_PARSE_INT32 = strings::parse::PARSE_INT32;
    STRINGS_PARSE_INT64 = strings::parse::PARSE_INT64;
    STRINGS_PARSE_FLOAT32 = strings::parse::PARSE_FLOAT32;
    STRINGS_PARSE_FLOAT64 = strings::parse::PARSE_FLOAT64;
    PARSE_DATE = strings::moments::PARSE_DATE;
    PARSE_TIMESTAMP = strings::moments::PARSE_TIMESTAMP;
    TRY_PARSE_INT32 = strings::try_parse::INT32;
    TRY_PARSE_INT64 = strings::try_parse::INT64;
    TRY_PARSE_FLOAT32 = strings::try_parse::FLOAT32;
    TRY_PARSE_FLOAT64 = strings::try_parse::FLOAT64;
    TRY_PARSE_DATE = strings::moments::TRY_PARSE_DATE;
    TRY_PARSE_TIMESTAMP = strings::moments::TRY_PARSE_TIMESTAMP;
    FORMAT_DATE = strings::moments::FORMAT_DATE;
    FORMAT_TIMESTAMP = strings::moments::FORMAT_TIMESTAMP;
    STRINGS_PRINTF = strings::printf::PRINTF;
    STRINGS_PRINTF_PACKED = strings::printf::PRINTF_PACKED;
    STRINGS_PACK = strings::packed::PACK;
    STRINGS_FORMAT = strings::format::FORMAT;
    STRINGS_FORMAT_PACKED = strings::format::FORMAT_PACKED;
    STRINGS_CONTAINS_REGEX = strings::regex::CONTAINS_REGEX;
    STRINGS_EXTRACT_REGEX = strings::regex::EXTRACT_REGEX;
    STRINGS_REPLACE_ALL_REGEX = strings::replace_regex::REPLACE_ALL_REGEX;
    ARRAY_MAKE_DENSE = array::elements::MAKE_DENSE_ARRAY;
    ARRAY_AT = array::elements::AT;
    ARRAY_SIZE = array::elements::SIZE;
    ARRAY_COUNT = array::reduce::COUNT;
    MATH_SUM = array::reduce::SUM;
    MATH_PROD = array::reduce::PROD;
    MATH_MEAN = array::reduce::MEAN;
    MATH_SUM_SPARSE = array::reduce::SUM_SPARSE;
    LOGICAL_ANY = array::reduce::LOGICAL_ANY;
    LOGICAL_ALL = array::reduce::LOGICAL_ALL;
    MATH_MIN = array::extremes::MIN;
    MATH_MAX = array::extremes::MAX;
    MATH_ARGMIN = array::extremes::ARGMIN;
    MATH_ARGMAX = array::extremes::ARGMAX;
    MATH_MEDIAN = array::order_statistics::MEDIAN;
    MATH_INVERSE_CDF = array::order_statistics::INVERSE_CDF;
    MATH_CDF = array::order_statistics::CDF;
    WEIGHTED_CDF = array::order_statistics::WEIGHTED_CDF;
    ARRAY_COLLAPSE = array::collapse::COLLAPSE;
    MATH_VAR = array::composites::VAR;
    MATH_STD = array::composites::STD;
    MATH_SKEW = array::composites::SKEW;
    MATH_KURTOSIS = array::composites::KURTOSIS;
    MATH_COVARIANCE = array::composites::COVARIANCE;
    MATH_CORRELATION = array::composites::CORRELATION;
    MATH_WEIGHTED_AVERAGE = array::composites::WEIGHTED_AVERAGE;
    MATH_SOFTMAX = array::composites::SOFTMAX;
    EDGE_FROM_SIZES = array::edges::FROM_SIZES;
    EDGE_FROM_SPLIT_POINTS = array::edges::FROM_SPLIT_POINTS;
    EDGE_TO_SCALAR = array::edges::TO_SCALAR;
    EDGE_TO_SINGLE = array::edges::TO_SINGLE;
    EDGE_FROM_MAPPING = array::edges::FROM_MAPPING;
    EDGE_FROM_SHAPE = array::edges::FROM_SHAPE;
    EDGE_FROM_SIZES_OR_SHAPE = array::edges::FROM_SIZES_OR_SHAPE;
    EDGE_FROM_KEYS = array::keys::FROM_KEYS;
    EDGE_COMPOSE = array::compose::COMPOSE;
    EDGE_PAIR_LEFT = array::pairs::PAIR_LEFT;
    EDGE_PAIR_RIGHT = array::pairs::PAIR_RIGHT;
    EDGE_RESIZE_GROUPS_CHILD_SIDE = array::resize::RESIZE_GROUPS_CHILD_SIDE;
    EDGE_RESIZE_GROUPS_PARENT_SIDE = array::resize::RESIZE_GROUPS_PARENT_SIDE;
    EDGE_CHILD_SHAPE = array::edge_parts::CHILD_SHAPE;
    EDGE_CHILD_SIZE = array::edge_parts::CHILD_SIZE;
    EDGE_PARENT_SHAPE = array::edge_parts::PARENT_SHAPE;
    EDGE_PARENT_SIZE = array::edge_parts::PARENT_SIZE;
    EDGE_SIZES = array::edge_parts::SIZES;
    EDGE_MAPPING = array::edge_parts::MAPPING;
    EDGE_INDICES = array::edge_parts::INDICES;
    EDGE_AS_DENSE_ARRAY_EDGE = array::edge_parts::AS_DENSE_ARRAY_EDGE;
    STRINGS_AGG_JOIN = strings::agg_join::AGG_JOIN;
    STRINGS_SPLIT = strings::split::SPLIT;
    STRINGS_FINDALL_REGEX = strings::findall_regex::FINDALL_REGEX;
    MATH_CUM_SUM = array::scans::CUM_SUM;
    MATH_CUM_MAX = array::scans::CUM_MAX;
    MATH_CUM_MIN = array::scans::CUM_MIN;
    ARRAY_CUM_COUNT = array::scans::CUM_COUNT;
    ARRAY_AGG_INDEX = array::scans::AGG_INDEX;
    ARRAY_ORDINAL_RANK = array::ranks::ORDINAL_RANK;
    ARRAY_DENSE_RANK = array::ranks::DENSE_RANK;
    ARRAY_SLICE = array::selection::SLICE;
    ARRAY_SELECT = array::selection::SELECT;
    ARRAY_PRESENT_VALUES = array::selection::PRESENT_VALUES;
    ARRAY_CONCAT = array::selection::CONCAT;
    ARRAY_EXPAND = array::selection::EXPAND;
    ARRAY_PRESENT_INDICES = array::indices::PRESENT_INDICES;
    ARRAY_FROM_INDICES_AND_VALUES = array::indices::FROM_INDICES_AND_VALUES;
    ARRAY_TAKE = array::indices::TAKE;
    ARRAY_INVERSE_MAPPING = array::indices::INVERSE_MAPPING;
    ARRAY_UNIQUE = array::distinct::UNIQUE;
    EDGE_GROUP_BY = array::distinct::GROUP_BY;
    EDGE_GROUP_BY2 = array::distinct::GROUP_BY2;
    MATH_SEARCHSORTED = array::search::SEARCHSORTED;
    ARRAY_MAKE_DENSE_SHAPE = array::shapes::MAKE_DENSE_ARRAY_SHAPE;
    ARRAY_MAKE_SHAPE = array::shapes::MAKE_ARRAY_SHAPE;
    ARRAY_RESIZE_SHAPE = array::shapes::RESIZE_ARRAY_SHAPE;
    ARRAY_SHAPE_SIZE = array::shapes::ARRAY_SHAPE_SIZE;
    ARRAY_IOTA = array::making::IOTA;
    ARRAY_SHAPED = array::making::SHAPED;
    ARRAY_TO_DENSE = array::making::TO_DENSE_ARRAY;
    ARRAY_TO_ARRAY = array::making::TO_ARRAY;
    ARRAY_AS_DENSE = array::making::AS_DENSE_ARRAY;
    ARRAY_AS_ARRAY = array::making::AS_ARRAY;
    ARRAY_INTERLEAVE = array::interleave::INTERLEAVE;
    ARRAY_INTERLEAVE_CAST = array::interleave::INTERLEAVE_CAST;
    ARRAY_RANDINT_WITH_SHAPE = array::randint::RANDINT_WITH_SHAPE;
    ARRAY_RANDINT_LIKE = array::randint::RANDINT_LIKE;
    RANDOM_CITYHASH = random::CITYHASH;
    RANDOM_SAMPLE = random::sample::SAMPLE;
    RANDOM_SAMPLE_N = random::sample::SAMPLE_N;
    DATE_YEAR = calendar::YEAR;
    DATE_MONTH = calendar::MONTH;
    DATE_DAY = calendar::DAY;
    DATE_WEEKDAY = calendar::WEEKDAY;
    DATE_DAY_OF_YEAR = calendar::DAY_OF_YEAR;
    DATE_QUARTER = calendar::QUARTER;
    DATE_ISO_YEAR = calendar::ISO_YEAR;
    DATE_ISO_WEEK = calendar::ISO_WEEK;
    DATE_IS_LEAP_YEAR = calendar::IS_LEAP_YEAR;
    DATE_DAYS_IN_MONTH = calendar::months::DAYS_IN_MONTH;
    DATE_START_OF_MONTH = calendar::months::START_OF_MONTH;
    DATE_END_OF_MONTH = calendar::months::END_OF_MONTH;
    DATE_ADD_MONTHS = calendar::months::ADD_MONTHS;
    DATE_ADD_YEARS = calendar::months::ADD_YEARS;
    DATE_MONTHS_BETWEEN = calendar::months::MONTHS_BETWEEN;
    DATE_YEARS_BETWEEN = calendar::months::YEARS_BETWEEN;
    DATE_MAKE = calendar::making::DATE;
    DATE_TRUNCATE = calendar::truncating::TRUNCATE;
    DATE_START_OF_YEAR = calendar::truncating::YEAR;
    DATE_START_OF_QUARTER = calendar::truncating::QUARTER;
    DATE_TRUNCATED_TO_MONTH = calendar::truncating::MONTH;
    DATE_START_OF_WEEK = calendar::truncating::WEEK;
    DATE_START_OF_DAY = calendar::truncating::DAY;
    DATE_START_OF_HOUR = calendar::truncating::HOUR;
    DATE_START_OF_MINUTE = calendar::truncating::MINUTE;
    DATE_START_OF_SECOND = calendar::truncating::SECOND;
    TIMESTAMP_DATE = calendar::DATE;
    TIMESTAMP_HOUR = calendar::HOUR;
    TIMESTAMP_MINUTE = calendar::MINUTE;
    TIMESTAMP_SECOND = calendar::SECOND;
    TIMESTAMP_MAKE = calendar::making::TIMESTAMP;
    TIMESTAMP_LOCAL = calendar::zones::LOCAL;
    TIMESTAMP_FROM_LOCAL = calendar::zones::FROM_LOCAL;
    TENSOR_MAXIMUM = tensor::MAXIMUM;
    TENSOR_MINIMUM = tensor::MINIMUM;
    TENSOR_RELU = tensor::RELU;
    TENSOR_SQUARE = tensor::SQUARE;
    TENSOR_RECIP = tensor::RECIP;
    TENSOR_ROUND = tensor::ROUND;
    TRUNC = math::rounding::TRUNC;
    TENSOR_WHERE = tensor::WHERE;
    TENSOR_AT = whole_tensors::AT;
    TENSOR_BIND = whole_tensors::BIND;
    TENSOR_ASSIGN = whole_tensors::ASSIGN;
    TENSOR_WHOLE_SUM = whole_tensors::WHOLE_SUM;
    TENSOR_WHOLE_PRODUCT = whole_tensors::WHOLE_PRODUCT;
    TENSOR_WHOLE_MIN = whole_tensors::WHOLE_MIN;
    TENSOR_WHOLE_MAX = whole_tensors::WHOLE_MAX;
    TENSOR_WHOLE_ABSMIN = whole_tensors::WHOLE_ABSMIN;
    TENSOR_WHOLE_ABSMAX = whole_tensors::WHOLE_ABSMAX;
    TENSOR_WHOLE_NORM = whole_tensors::WHOLE_NORM;
    TENSOR_WHOLE_SQUARED_NORM = whole_tensors::WHOLE_SQUARED_NORM;
    TENSOR_WHOLE_TRACE = whole_tensors::WHOLE_TRACE;
    TENSOR_SUM = whole_tensors::SUM;
    TENSOR_PRODUCT = whole_tensors::PRODUCT;
    TENSOR_MAX = whole_tensors::MAX;
    TENSOR_MIN = whole_tensors::MIN;
    TENSOR_ARGMAX = whole_tensors::ARGMAX;
    TENSOR_ARGMIN = whole_tensors::ARGMIN;
    TENSOR_ANY = whole_tensors::ANY;
    TENSOR_ALL = whole_tensors::ALL;
    TENSOR_MEAN = whole_tensors::MEAN;
    TENSOR_SOFTMAX = whole_tensors::SOFTMAX;
    TENSOR_LOG_SOFTMAX = whole_tensors::LOG_SOFTMAX;
    TENSOR_LOGSUMEXP = whole_tensors::LOGSUMEXP;
    TENSOR_LAYER_NORM = whole_tensors::LAYER_NORM;
    TENSOR_CROSS_ENTROPY = whole_tensors::CROSS_ENTROPY;
    TENSOR_TRANSPOSE = whole_tensors::TRANSPOSE;
    TENSOR_RESHAPE = whole_tensors::RESHAPE;
    TENSOR_BROADCAST = whole_tensors::BROADCAST;
    TENSOR_SLICE = whole_tensors::SLICE;
    TENSOR_TAKE = whole_tensors::TAKE;
    TENSOR_CONCAT = whole_tensors::CONCAT;
    TENSOR_GRAD = whole_tensors::GRAD;
    TENSOR_OF_ARRAY = whole_tensors::OF_ARRAY;
    ARRAY_OF_TENSOR = whole_tensors::TO_ARRAY;
}

/// A set of operators.
#[derive(Clone)]
pub struct Registry {
    defs: Vec<&'static OpDef>,
    resolutions: Resolutions,
    /// For each operator, what it is as structure.
    structures: Vec<Option<Structure>>,
    /// For each operator, the effects of its overloads, once one was asked for.
    effects: Vec<OnceLock<Box<[Effects]>>>,
    names: FxHashMap<&'static str, OpId>,
    /// The operators that short names mean with but one operand, where these are others than `names` has.
    of_one: FxHashMap<&'static str, OpId>,
}

impl Registry {
    /// The operators of the language.
    #[must_use]
    pub fn standard() -> &'static Registry {
        static REGISTRY: OnceLock<Registry> = OnceLock::new();
        REGISTRY.get_or_init(|| {
            let (mut names, mut of_one) = (FxHashMap::default(), FxHashMap::default());
            for (at, def) in STANDARD.iter().enumerate() {
                let id = OpId(at as u16);
                names.insert(def.name, id);
                for alias in def.aliases {
                    if names.contains_key(alias) {
                        of_one.insert(*alias, id);
                    } else {
                        names.insert(alias, id);
                    }
                }
            }
            let structure = |(at, def): (usize, &&OpDef)| match def.meaning {
                Meaning::Structure(structure) => Some(structure),
                _ => (at == id::HAS.index()).then_some(Structure::Has),
            };
            let structures = STANDARD.iter().enumerate().map(structure).collect();
            Registry {
                defs: STANDARD.to_vec(),
                structures,
                resolutions: Resolutions::default(),
                effects: vec![OnceLock::new(); STANDARD.len()],
                names,
                of_one,
            }
        })
    }

    /// Adds an operator; its record lives as long as the process.
    pub(crate) fn add(&mut self, def: OpDef) -> Result<OpId, Error> {
        let id = OpId(
            u16::try_from(self.defs.len())
                .map_err(|_| refused("a registry holds up to 65,535 operators".to_owned()))?,
        );
        let def: &'static OpDef = Box::leak(Box::new(def));
        self.defs.push(def);
        // Only standard operators are structure.
        self.structures.push(None);
        self.effects.push(OnceLock::new());
        self.names.insert(def.name, id);
        Ok(id)
    }

    /// Makes the registry one that lives as long as the process, which is what models refer to.
    #[must_use]
    pub fn leak(self) -> &'static Registry {
        Box::leak(Box::new(self))
    }

    /// The record of an operator.
    #[must_use]
    #[inline]
    pub fn get(&self, id: OpId) -> &'static OpDef {
        self.defs[id.index()]
    }

    /// Settles the types of a call.
    ///
    /// # Errors
    /// The operator does not take these types.
    pub fn resolve(&self, id: OpId, args: &[Argument<'_>]) -> Result<Cow<'_, Resolved>, TypeFault> {
        let key = Key::of(id, args);
        if let Some(known) = key.and_then(|key| self.resolutions.get(key)) {
            return Ok(Cow::Borrowed(known));
        }
        let def = self.get(id);
        let resolved = def.resolve(args)?;
        if let Some(key) = key.filter(|_| args.iter().all(|arg| arg.literal.is_none()) || def.is_typed_by_types()) {
            self.resolutions.remember(key, &resolved);
        }
        Ok(Cow::Owned(resolved))
    }

    /// What evaluating an overload of an operator does besides giving its value.
    #[must_use]
    pub fn effects(&self, id: OpId, overload: u16) -> Effects {
        let def = self.get(id);
        let all = || def.overloads().iter().map(|overload| Effects::of(def, overload)).collect();
        self.effects[id.index()].get_or_init(all)[usize::from(overload)]
    }

    /// What an operator is as structure, if it is any: what takes values apart or puts them together where they lie.
    #[must_use]
    #[inline]
    pub fn structure(&self, id: OpId) -> Option<Structure> {
        self.structures[id.index()]
    }

    /// The operator with this name or alias.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<OpId> {
        self.names.get(name).copied()
    }

    /// All operators with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (OpId, &'static OpDef)> + '_ {
        self.defs.iter().enumerate().map(|(at, def)| (OpId(at as u16), *def))
    }

    /// The operator that casts to a scalar type; none for units and texts.
    #[must_use]
    pub fn cast_to(&self, scalar: Scalar) -> Option<OpId> {
        cast_operator(scalar)
    }
}

impl std::fmt::Debug for Registry {
    /// How many operators there are: what they are would fill pages of whatever holds a registry.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registry({} operators)", self.defs.len())
    }
}

/// The longest name in capital letters for which one in small letters is suggested, in bytes.
const LONGEST_SUGGESTED: usize = 64;

/// The name without its family, which says nothing about what was meant.
fn own(name: &str) -> &str {
    name.split_once('.').map_or(name, |(_, own)| own)
}

impl Vocabulary for Registry {
    fn resolve(&self, name: &str) -> Option<Callable<'_>> {
        let def = self.get(self.find(name)?);
        let of_one = self.of_one.get(name).map(|op| self.get(*op).name);
        Some(Callable { name: def.name, params: def.params, variadic: def.variadic, of_one })
    }

    fn suggest(&self, name: &str) -> Vec<String> {
        // The same name in capital letters, as formulas of tables have it, means nothing else.
        let lower = if name.len() <= LONGEST_SUGGESTED { name.to_ascii_lowercase() } else { String::new() };
        if lower != name && self.find(&lower).is_some() {
            return vec![lower];
        }
        // A dotted name is compared with dotted names, a short one with short ones.
        let known = || self.names.keys().copied().filter(|known| !known.contains("._"));
        // One that is called so, but is of another kind, is meant more likely than one that is called nearly so.
        let mut meant: Vec<&str> = known().filter(|known| *known != name && own(known) == own(name)).collect();
        meant.sort_unstable();
        let alike = known().filter(|known| known.contains('.') == name.contains('.'));
        let near = near_names(name, 1 + own(name).len() / 4, alike);
        let near: Vec<&str> = near.into_iter().filter(|near| !meant.contains(near)).collect();
        meant.into_iter().chain(near).take(3).map(ToOwned::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_are_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for (_, def) in Registry::standard().iter() {
            for name in std::iter::once(&def.name).chain(def.aliases) {
                // Their second meaning is tested below.
                let has_two = ["min", "max"].contains(name);
                assert!(seen.insert(*name) || has_two, "{name} is taken twice");
            }
        }
    }

    #[test]
    fn a_short_name_may_mean_another_operator_of_one_operand() {
        let registry = Registry::standard();
        let found = |name: &str| Vocabulary::resolve(registry, name).map(|callable| (callable.name, callable.of_one));
        assert_eq!(found("max"), Some(("math.maximum", Some("math.max"))));
        assert_eq!(found("min"), Some(("math.minimum", Some("math.min"))));
        assert_eq!(found("maximum"), Some(("math.maximum", None)));
        assert_eq!(found("math.max"), Some(("math.max", None)));
        assert_eq!(registry.of_one.len(), 2);
    }

    #[test]
    fn suggestions_are_near_and_public() {
        assert_eq!(Registry::standard().suggest("sqr")[0], "sqrt");
        assert_eq!(Registry::standard().suggest("math.sqr")[0], "math.sqrt");
        assert!(Registry::standard().suggest("frobnicate").is_empty());
        assert_eq!(Registry::standard().suggest("transpose"), ["tensor.transpose"]);
        assert_eq!(Registry::standard().suggest("ROUND"), ["round"]);
    }
}
