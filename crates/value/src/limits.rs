//! The limits of the library, with their defaults. They keep untrusted models from exhausting the machine. Each stage
//! that reads, compiles or runs a model checks its own limits, and reports an exceeded one with [`Limits::exceeded`].
//! What a limit protects and what happens beyond it is in `docs/limits.md`.

use crate::clock::WorkStart;
use crate::threads::note_process;
use crate::{Code, Diagnostic, is_compile_ended};
use cembra_runtime::{Arena, Context, Extent, QType};
use std::fmt;
use std::time::Duration;

macro_rules! limits {
    ($($(#[doc = $doc:literal])* $limit:ident $field:ident: $ty:ty = $default:expr, $unit:literal, $hint:literal;)*) => {
        /// The resources that a model may use. Every limit is inclusive: exactly the limit is still allowed. One value serves all
        /// stages; each stage checks its own limits. For each limit, a method with the name of its field sets it.
        ///
        /// ```
        /// use cembra_value::Limits;
        ///
        /// let limits = Limits::default().nodes(1_000);
        /// assert_eq!((limits.nodes, limits.nesting), (1_000, 256));
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub struct Limits { $($(#[doc = $doc])* pub $field: $ty,)* }

        impl Default for Limits {
            fn default() -> Self {
                Limits { $($field: $default,)* }
            }
        }

        /// A field of [`Limits`].
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Limit { $(#[doc = concat!("[`Limits::", stringify!($field), "`].")] $limit,)* }

        impl Limit {
            /// All limits, in the order of the stages that check them.
            pub const ALL: &[Limit] = &[$(Limit::$limit),*];

            /// The name of this limit's field of [`Limits`], which messages use too.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Limit::$limit => stringify!($field)),* }
            }

            /// A hint for a model that exceeds this limit.
            #[must_use]
            pub fn hint(self) -> String {
                let advice = match self { $(Limit::$limit => $hint),* };
                format!("{advice}, or raise the limit `{}`", self.name())
            }
        }

        impl Limits {
            $(
                #[doc = concat!("Returns these limits with another `", stringify!($field), "`.")]
                #[must_use]
                pub const fn $field(mut self, $field: $ty) -> Limits {
                    self.$field = $field;
                    self
                }
            )*

            /// The value of `limit` with its unit, as messages show it.
            #[must_use]
            pub fn show(&self, limit: Limit) -> String {
                match limit { $(Limit::$limit => format!("{} {}", self.$field.amount(), $unit).trim_end().to_owned()),* }
            }

            /// Returns these limits, lowered where `other` has a lower limit that differs from the default.
            ///
            /// ```
            /// use cembra_value::Limits;
            ///
            /// let read = Limits::default().loop_iterations(1_000).nodes(8_000_000);
            /// let compiled = Limits::default().loop_iterations(5_000).string_work(1 << 40);
            /// // The higher limit on nodes is not taken, and the default of `string_work` lowers nothing.
            /// assert_eq!(compiled.lowered_by(&read), compiled.loop_iterations(1_000));
            /// ```
            #[must_use]
            pub fn lowered_by(&self, other: &Limits) -> Limits {
                let default = Limits::default();
                let mut lowered = *self;
                $(if other.$field != default.$field {
                    lowered.$field = lowered.$field.min(other.$field);
                })*
                lowered
            }

            /// Sets the limit whose field is called `name` to the number in the text `value`: a whole number or, for a
            /// time, a number of seconds. Digits may have `_` between them.
            ///
            /// ```
            /// use cembra_value::Limits;
            ///
            /// let mut limits = Limits::default();
            /// limits.set("nodes", "20_000")?;
            /// assert_eq!(limits, Limits::default().nodes(20_000));
            /// assert_eq!(limits.set("nodes", "many").unwrap_err().message(), "the limit `nodes` must be a whole number, not `many`");
            /// # Ok::<(), cembra_value::Diagnostic>(())
            /// ```
            ///
            /// # Errors
            /// If there is no limit with this name, or if `value` is not a number of the required kind.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), Diagnostic> {
                let Some(limit) = Limit::ALL.iter().find(|limit| limit.name() == name) else {
                    let known: Vec<&str> = Limit::ALL.iter().map(|limit| limit.name()).collect();
                    return Err(Diagnostic::new(Code::Option, format!("there is no limit `{name}`"))
                        .hint(format!("the limits are {}", known.join(", "))));
                };
                match limit { $(Limit::$limit => self.$field = Amount::read(name, value)?),* }
                Ok(())
            }
        }
    };
}

limits! {
    /// Reading: the most bytes of source text, including used files. Default: 16 MiB; never more than 4 GiB, the most that spans
    /// can count.
    SourceBytes source_bytes: usize = 16 << 20, "bytes of text", "split the model";
    /// Reading: the most files that a text uses, directly and indirectly, each counted once. Together with the text they are
    /// subject to `source_bytes`. Default: 256.
    Files files: usize = 256, "files", "put several files together";
    /// Reading: the most bytes of a file with a model, binary or JSON. Default: 256 MiB.
    FileBytes file_bytes: usize = 256 << 20, "bytes of a file", "split the model";
    /// Reading: the most models that are read from one folder. Default: 10,000.
    SetModels set_models: usize = 10_000, "models of a folder", "keep the models in several folders";
    /// Reading: the most bytes of text in all models of a folder. A file that several of them use counts once. Default: 1 GiB.
    SetBytes set_bytes: usize = 1 << 30, "bytes of the models of a folder", "keep the models in several folders";
    /// Reading: the most bytes of text that are parsed for all models of a folder. A used file counts once per model that uses
    /// it. Default: 4 GiB.
    SetParsedBytes set_parsed_bytes: u64 = 4 << 30, "bytes of the models of a folder with all that they use", "keep the models in several folders, or share fewer large tables";
    /// Reading: the deepest nesting of brackets, calls and conditions. Default: 256. Sums, `**` and `else if` chains of any
    /// length are one level.
    Nesting nesting: usize = 256, "levels of nesting", "name inner parts with `let`";
    /// Reading and preparing: the deepest nesting of tuples, in types and in values, including tuples that are nested
    /// step by step. Default: 64, for which processing tuples fits on a stack of 256 KiB.
    TupleNesting tuple_nesting: usize = 64, "levels of tuples", "keep tuples flat";
    /// Reading: the most nodes of the graph, including unused function bodies and definitions. Default: 4 million.
    Nodes nodes: usize = 4_000_000, "nodes", "split the model, or call fewer functions";
    /// Reading: the most operands of all operators together, each occurrence counted. Default: 16 million. In a file,
    /// source spans are counted too, separately.
    Operands operands: usize = 16_000_000, "operands", "split the model, or give operators fewer operands";
    /// Reading: the most bytes of all literals together, each occurrence counted. Default: 16 MiB.
    LiteralBytes literal_bytes: usize = 16 << 20, "bytes of literals", "make inputs of long texts";
    /// Reading: the most bytes of one name, or of one operator path. Default: 1 KiB.
    NameBytes name_bytes: usize = 1 << 10, "bytes of a name", "choose a shorter name";
    /// Reading and preparing: the most nodes and operands that are visited while calls of functions are replaced by their bodies,
    /// and operators on sequences by operators on their elements. Default: 16 million.
    Instantiation instantiation: usize = 16_000_000, "steps of calls and sequences", "name repeated calls with `let`";
    /// Reading and preparing: the most problems that are reported before giving up. Default: 100.
    Problems problems: usize = 100, "problems", "correct the reported problems first";
    /// Preparing: the most fields in the tuple types of all nodes together, including inner tuples. Default: 4 million; never
    /// more than 64 million, so that offsets in a type fit in 32 bits.
    TupleFields tuple_fields: usize = 4_000_000, "fields of tuples", "pass on fewer fields, or fewer tuples";
    /// Preparing and compiling: the most time from the first pass to runnable code. Reading a text may take as long
    /// separately. Time is checked between stages, and within a stage every few thousand tokens or nodes, so it can be
    /// exceeded a little. Default: 60 seconds.
    CompileTime compile_time: Duration = Duration::from_secs(60), "", "split the model, or use the backend `interpreter`";
    /// Planning: the most bytes of a frame, which is the memory of one evaluation. Default: 64 MiB; never more than 2 GiB, the
    /// most that code can address.
    FrameBytes frame_bytes: usize = 64 << 20, "bytes of a frame", "take fewer or smaller inputs and outputs";
    /// Native code: the most steps of a plan in one function, including the fields of tuples that they make and the steps that
    /// the code generator repeats in every branch that uses their result. Default: 2,000; larger models are cut into several
    /// functions.
    NativeSteps native_steps: usize = 2_000, "steps in a function", "use the backend `interpreter`, or the default one";
    /// Native code: the most fields of a tuple that one step makes or that is an output, because these cannot be cut. Each field
    /// of a tuple from a loop or a conditional counts ten times. Default: 20,000; with `Backend::Auto`, models beyond it are
    /// interpreted.
    NativeFields native_fields: usize = 20_000, "fields in native code", "use the backend `interpreter`, or the default one";
    /// Native code: the most bytes of machine code for one model. Default: 256 MiB; with `Backend::Auto`, a model beyond it is
    /// interpreted.
    CodeBytes code_bytes: usize = 256 << 20, "bytes of machine code", "use the backend `interpreter`, or the default one";
    /// Evaluating: the most bytes of strings that one evaluation makes. Default: 64 MiB.
    ArenaBytes arena_bytes: usize = Arena::LIMIT, "bytes of strings", "make shorter strings";
    /// Evaluating: the most bytes of arrays that one evaluation holds at a time. Default: 4 GiB. It is checked after an
    /// operator has made an array, of at most 2^28 elements.
    ArrayBytes array_bytes: u64 = 4 << 30, "bytes of arrays", "make fewer or smaller arrays";
    /// Evaluating: the most entries of a dictionary that is passed to a model, as for `input rates: dict[text, f64]`. Default: 16
    /// million.
    DictEntries dict_entries: usize = 16_000_000, "entries of a dictionary", "give the model fewer entries, or look values up before it runs";
    /// Evaluating: the most iterations in one evaluation, summed over all loops. Default: 10 million.
    LoopIterations loop_iterations: u64 = Context::ITERATIONS, "rounds of loops", "loop over fewer elements";
    /// Evaluating: the most work on strings in one evaluation, in bytes that operators read, each counted as often as it is read.
    /// Bytes that take longer, as in matching a large regular expression, count more often. Default: 1 Gi, a few seconds.
    StringWork string_work: u64 = Context::STRING_WORK, "bytes of strings read", "read shorter strings, or read strings less often";
}

/// The type of a limit's value: how messages print such a value, and how it is read from text.
trait Amount: Sized {
    /// The description of a valid text, for messages.
    const FORM: &str;

    fn amount(&self) -> impl fmt::Display;

    fn parse(digits: &str) -> Option<Self>;

    fn read(limit: &str, text: &str) -> Result<Self, Diagnostic> {
        Self::parse(&text.replace('_', "")).ok_or_else(|| {
            let message = format!("the limit `{limit}` must be {}, not `{text}`", Self::FORM);
            Diagnostic::new(Code::Option, message)
        })
    }
}

macro_rules! whole_numbers {
    ($($ty:ty),*) => { $(
        impl Amount for $ty {
            const FORM: &str = "a whole number";

            fn amount(&self) -> impl fmt::Display {
                *self
            }

            fn parse(digits: &str) -> Option<Self> {
                digits.parse().ok()
            }
        }
    )* };
}

whole_numbers!(usize, u64);

impl Amount for Duration {
    const FORM: &str = "a number of seconds";

    fn amount(&self) -> impl fmt::Display {
        format!("{self:?}")
    }

    fn parse(digits: &str) -> Option<Self> {
        Duration::try_from_secs_f64(digits.parse().ok()?).ok()
    }
}

impl Limits {
    /// Returns the problem to report for a model that exceeds `limit`.
    #[must_use]
    pub fn exceeded(&self, limit: Limit) -> Diagnostic {
        let name = limit.name();
        Diagnostic::new(Code::Limit, format!("the model exceeds the limit `{name}` of {}", self.show(limit)))
            .hint(limit.hint())
    }
}

impl Limits {
    /// Returns the most fields that all types of a model may have together, and the deepest nesting of each type. The number of
    /// fields is capped so that every field has a 32-bit offset.
    #[must_use]
    pub fn type_allowance(&self) -> Extent {
        Extent { fields: self.tuple_fields.min(64 << 20), nesting: self.tuple_nesting }
    }

    /// Subtracts the fields of `qtype` from `allowance`, which has the number of fields that the types of a model may
    /// still contain.
    ///
    /// # Errors
    /// If the type exceeds a limit, which the error names.
    pub fn admit_type(qtype: &QType, allowance: &mut Extent) -> Result<(), Limit> {
        let extent = qtype.extent(*allowance);
        if extent.nesting > allowance.nesting {
            return Err(Limit::TupleNesting);
        }
        allowance.fields = allowance.fields.checked_sub(extent.fields).ok_or(Limit::TupleFields)?;
        Ok(())
    }
}

/// The limits for a compilation or for reading a text, and the time of its start. Each stage asks the budget whether
/// the work may continue. Time is the processor time of the thread that compiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    limits: Limits,
    started: Option<WorkStart>,
}

impl Budget {
    /// The number of nodes that a traversal visits between two checks of the clock.
    const STRIDE: usize = 4096;

    /// Returns a budget for a compilation that has not begun, so that the time limit cannot be exceeded.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Budget { limits, started: None }
    }

    /// Returns a budget for a compilation that begins now.
    #[must_use]
    pub fn start(limits: Limits) -> Self {
        // Models outlive forks, and their runs use thread pools.
        note_process();
        Budget { limits, started: Some(WorkStart::now()) }
    }

    /// The limits of the compilation.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Checks whether there is time left.
    ///
    /// # Errors
    /// If the time is over or the token of [`compile_until`](crate::compile_until) is cancelled, in both cases as an exceeded
    /// [`Limit::CompileTime`].
    pub fn check_time(&self) -> Result<(), Diagnostic> {
        match self.started {
            Some(_) if is_compile_ended() => Err(self.limits.exceeded(Limit::CompileTime)),
            // A limit of zero allows no check to pass, whatever the resolution of the clock.
            Some(started)
                if self.limits.compile_time.is_zero() || started.is_longer_ago_than(self.limits.compile_time) =>
            {
                Err(self.limits.exceeded(Limit::CompileTime))
            }
            _ => Ok(()),
        }
    }

    /// Checks the time as [`check_time`](Budget::check_time) does, but only if `number` is a multiple of 4,096.
    /// `number` counts the visits of a traversal.
    ///
    /// # Errors
    /// The errors of [`check_time`](Budget::check_time).
    #[inline]
    pub fn check_visit(&self, number: usize) -> Result<(), Diagnostic> {
        if number.is_multiple_of(Self::STRIDE) { self.check_time() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let limits = Limits::default();
        let shown: Vec<String> = Limit::ALL.iter().map(|limit| limits.show(*limit)).collect();
        let expected = [
            "16777216 bytes of text",
            "256 files",
            "268435456 bytes of a file",
            "10000 models of a folder",
            "1073741824 bytes of the models of a folder",
            "4294967296 bytes of the models of a folder with all that they use",
            "256 levels of nesting",
            "64 levels of tuples",
            "4000000 nodes",
            "16000000 operands",
            "16777216 bytes of literals",
            "1024 bytes of a name",
            "16000000 steps of calls and sequences",
            "100 problems",
            "4000000 fields of tuples",
            "60s",
            "67108864 bytes of a frame",
            "2000 steps in a function",
            "20000 fields in native code",
            "268435456 bytes of machine code",
            "67108864 bytes of strings",
            "4294967296 bytes of arrays",
            "16000000 entries of a dictionary",
            "10000000 rounds of loops",
            "1073741824 bytes of strings read",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn every_limit_is_set_by_its_name() {
        let defaults = Limits::default();
        for limit in Limit::ALL {
            let mut limits = defaults;
            assert_eq!(limits.set(limit.name(), "7"), Ok(()));
            let changed = Limit::ALL.iter().filter(|other| limits.show(**other) != defaults.show(**other));
            assert_eq!(changed.collect::<Vec<_>>(), [limit]);
            assert!(limits.show(*limit).starts_with('7'), "{}", limits.show(*limit));
        }
        let mut limits = defaults;
        assert_eq!(limits.set("compile_time", "0.25"), Ok(()));
        assert_eq!(limits.compile_time, Duration::from_millis(250));
        for (name, value) in [("nodes", "-1"), ("nodes", ""), ("nodes", "1.5"), ("compile_time", "-1"), ("time", "1")] {
            let before = limits;
            assert_eq!(limits.set(name, value).unwrap_err().code(), Code::Option);
            assert_eq!(limits, before);
        }
        let unknown = limits.set("node", "1").unwrap_err();
        assert!(
            unknown.hints()[0].starts_with("the limits are source_bytes, files, file_bytes, set_models,"),
            "{unknown}"
        );
    }

    #[test]
    fn an_exceeded_limit_is_named_with_its_value() {
        let problem = Limits { nesting: 3, ..Limits::default() }.exceeded(Limit::Nesting);
        assert_eq!(problem.code(), Code::Limit);
        assert_eq!(problem.message(), "the model exceeds the limit `nesting` of 3 levels of nesting");
        assert!(problem.hints()[0].ends_with("or raise the limit `nesting`"), "{problem}");
    }

    #[test]
    fn time_passes_only_for_what_has_begun() {
        let limits = Limits { compile_time: Duration::ZERO, ..Limits::default() };
        assert_eq!(Budget::new(limits).check_time(), Ok(()));
        let begun = Budget::start(limits);
        assert_eq!(begun.check_visit(1), Ok(()));
        for found in [begun.check_time(), begun.check_visit(0), begun.check_visit(8192)] {
            assert_eq!(found, Err(limits.exceeded(Limit::CompileTime)));
        }
        assert_eq!(Budget::start(Limits::default()).check_time(), Ok(()));
    }
}
