//! Every limit, with its default: what keeps a model from a stranger from exhausting the host. Whoever reads, compiles or
//! runs a model checks the limits of that stage and says which was exceeded with [`Limits::exceeded`]. What a limit protects
//! and what happens beyond it is in `docs/limits.md`.

use crate::clock::Began;
use crate::threads::note_process;
use crate::{Code, Diagnostic, is_compile_ended};
use cembra_runtime::{Arena, Context, Extent, QType};
use std::fmt;
use std::time::Duration;

macro_rules! limits {
    ($($(#[doc = $doc:literal])* $limit:ident $field:ident: $ty:ty = $default:expr, $unit:literal, $hint:literal;)*) => {
        /// How much a model may take. Every limit is inclusive: exactly the limit is still allowed. One value serves all
        /// stages; each looks at its own limits. A method for each limit, with the name of its field, sets it.
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

        /// One of the limits.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Limit { $(#[doc = concat!("[`Limits::", stringify!($field), "`].")] $limit,)* }

        impl Limit {
            /// Every limit, in the order of the stages.
            pub const ALL: &[Limit] = &[$(Limit::$limit),*];

            /// The name of the field of [`Limits`], which messages use too.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Limit::$limit => stringify!($field)),* }
            }

            /// What to do about a model that exceeds it.
            #[must_use]
            pub fn hint(self) -> String {
                let advice = match self { $(Limit::$limit => $hint),* };
                format!("{advice}, or raise `Limits::{}`", self.name())
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

            /// The value of a limit with its unit, as messages show it.
            #[must_use]
            pub fn show(&self, limit: Limit) -> String {
                match limit { $(Limit::$limit => format!("{} {}", self.$field.amount(), $unit).trim_end().to_owned()),* }
            }

            /// Returns these limits, each lowered to that of `other` if `other` has another value there than the default.
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

            /// Sets the limit with this name, that of the field, to what a text says: a whole number, or for a time a number
            /// of seconds. Digits may have `_` between them.
            ///
            /// ```
            /// use cembra_value::Limits;
            ///
            /// let mut limits = Limits::default();
            /// limits.set("nodes", "20_000")?;
            /// assert_eq!(limits, Limits::default().nodes(20_000));
            /// assert_eq!(limits.set("nodes", "many").unwrap_err().message(), "the limit `nodes` is a whole number, not `many`");
            /// # Ok::<(), cembra_value::Diagnostic>(())
            /// ```
            ///
            /// # Errors
            /// There is no limit with this name, or the text is no such number.
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
    /// Reading: bytes of source text, that of used files included. Default 16 MiB; never more than 4 GiB, which is what spans can count.
    SourceBytes source_bytes: usize = 16 << 20, "bytes of text", "split the model";
    /// Reading: files that a text uses, and that those use, each counted once; together with it they have `source_bytes`. Default 256.
    Files files: usize = 256, "files", "put them together";
    /// Reading: bytes of a file with a model, binary or JSON. Default 256 MiB.
    FileBytes file_bytes: usize = 256 << 20, "bytes of a file", "split the model";
    /// Reading: models of a folder. Default 10,000.
    SetModels set_models: usize = 10_000, "models of a folder", "keep them in several folders";
    /// Reading: bytes of the texts of all models of a folder; a file that several of them use counts once. Default 1 GiB.
    SetBytes set_bytes: usize = 1 << 30, "bytes of the models of a folder", "keep them in several folders";
    /// Reading: bytes of the texts of all models of a folder as they are parsed; a used file counts once for each model that uses it.
    /// Default 4 GiB.
    SetParsedBytes set_parsed_bytes: u64 = 4 << 30, "bytes of the models of a folder with all that they use", "keep them in several folders, or share fewer large tables";
    /// Reading: levels of brackets, calls and conditions inside each other. Default 256. Sums, `**` and `else if` chains of any
    /// length are one level.
    Nesting nesting: usize = 256, "levels of nesting", "name inner parts with `let`";
    /// Reading and preparing: levels of tuples inside each other, in types and in values, also those made step by step. Default
    /// 64: what is done with tuples of so many levels fits on a stack of 256 KiB.
    TupleNesting tuple_nesting: usize = 64, "levels of tuples", "keep tuples flat";
    /// Reading: nodes of the graph, function bodies and definitions that nobody uses included. Default 4 million.
    Nodes nodes: usize = 4_000_000, "nodes", "split the model, or call fewer functions";
    /// Reading: operands of all operators together, each occurrence counted. Default 16 million. In a file the places of a source
    /// are counted too, by themselves.
    Operands operands: usize = 16_000_000, "operands", "split the model, or give operators fewer operands";
    /// Reading: bytes of all literals together, each occurrence counted. Default 16 MiB.
    LiteralBytes literal_bytes: usize = 16 << 20, "bytes of literals", "make long texts inputs";
    /// Reading: bytes of one name, or of one path of an operator. Default 1 KiB.
    NameBytes name_bytes: usize = 1 << 10, "bytes of a name", "choose a shorter name";
    /// Reading and preparing: nodes and operands visited while calls of functions are replaced by their bodies, and operators on
    /// sequences by operators on their elements. Default 16 million.
    Instantiation instantiation: usize = 16_000_000, "steps of calls and sequences", "name repeated calls with `let`";
    /// Reading and preparing: problems reported before giving up. Default 100.
    Problems problems: usize = 100, "problems", "mend these first";
    /// Preparing: fields of the tuple types of all nodes together, those of inner tuples included. Default 4 million; never
    /// more than 64 million, so that no type outgrows an address.
    TupleFields tuple_fields: usize = 4_000_000, "fields of tuples", "pass on fewer fields, or fewer tuples";
    /// Preparing and compiling: how long it may take, from the first pass to runnable code; reading a text may take as long by
    /// itself. It is looked at between stages and every few thousand tokens and nodes, so it can be passed by what a stage takes
    /// for those. Default 60 seconds.
    CompileTime compile_time: Duration = Duration::from_secs(60), "", "split the model, or use the interpreter";
    /// Planning: bytes of a frame, the memory of one evaluation. Default 64 MiB; never more than 2 GiB, which is what code
    /// can address.
    FrameBytes frame_bytes: usize = 64 << 20, "bytes of a frame", "take fewer or smaller inputs and outputs";
    /// Native code: steps of a plan in one function, fields of the tuples that they make, and steps that the code generator
    /// repeats in every branch that uses their result. Default 2,000; larger models are cut into several functions.
    NativeSteps native_steps: usize = 2_000, "steps in a function", "use the interpreter, or `Backend::Auto`";
    /// Native code: fields of a tuple that one step makes, or that is an output: that cannot be cut. Each field of a tuple that a
    /// loop or a conditional results in counts ten times. Default 20,000; with `Backend::Auto` models beyond it are interpreted.
    NativeFields native_fields: usize = 20_000, "fields in native code", "use the interpreter, or `Backend::Auto`";
    /// Native code: bytes of the machine code of one model. Default 256 MiB; with `Backend::Auto` a model beyond it is
    /// interpreted.
    CodeBytes code_bytes: usize = 256 << 20, "bytes of machine code", "use the interpreter, or `Backend::Auto`";
    /// Evaluating: bytes of the strings that one evaluation makes. Default 64 MiB.
    ArenaBytes arena_bytes: usize = Arena::LIMIT, "bytes of strings", "make shorter strings";
    /// Evaluating: bytes of the arrays that one evaluation made and still has. Default 4 GiB. It is looked at when an operator has
    /// made an array, of which it makes no more than 2^28 elements.
    ArrayBytes array_bytes: u64 = 4 << 30, "bytes of arrays", "make fewer or smaller arrays";
    /// Evaluating: entries of a dictionary that a model is given, `input rates: dict[text, f64]`. Default 16 million.
    DictEntries dict_entries: usize = 16_000_000, "entries of a dictionary", "give the model fewer, or look them up before it runs";
    /// Evaluating: rounds of all loops of one evaluation together. Default 10 million.
    LoopIterations loop_iterations: u64 = Context::ITERATIONS, "rounds of loops", "loop over less";
    /// Evaluating: work on strings of one evaluation, in bytes that operators read, each as often as it is read. Bytes that
    /// take longer count more often, as those that a large regular expression is matched with. Default 1 Gi, a few seconds.
    StringWork string_work: u64 = Context::STRING_WORK, "bytes of strings read", "read shorter strings, or read them less often";
}

/// What limits are counted in: how messages show it, and how it is read.
trait Amount: Sized {
    /// What it is called.
    const FORM: &str;

    fn amount(&self) -> impl fmt::Display;

    fn parse(digits: &str) -> Option<Self>;

    fn read(limit: &str, text: &str) -> Result<Self, Diagnostic> {
        Self::parse(&text.replace('_', "")).ok_or_else(|| {
            let message = format!("the limit `{limit}` is {}, not `{text}`", Self::FORM);
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
    /// The problem of a model that goes beyond `limit`.
    #[must_use]
    pub fn exceeded(&self, limit: Limit) -> Diagnostic {
        let name = limit.name();
        Diagnostic::new(Code::Limit, format!("the model exceeds the limit `{name}` of {}", self.show(limit)))
            .hint(limit.hint())
    }
}

impl Limits {
    /// How large the types of a model may be, all together in fields and each in nesting. At most as many fields as still
    /// have an address of 32 bits, whatever they hold.
    #[must_use]
    pub fn type_allowance(&self) -> Extent {
        Extent { fields: self.tuple_fields.min(64 << 20), nesting: self.tuple_nesting }
    }

    /// Takes a type out of an allowance.
    ///
    /// # Errors
    /// The limit that the type exceeds.
    pub fn admit_type(qtype: &QType, allowance: &mut Extent) -> Result<(), Limit> {
        let extent = qtype.extent(*allowance);
        if extent.nesting > allowance.nesting {
            return Err(Limit::TupleNesting);
        }
        allowance.fields = allowance.fields.checked_sub(extent.fields).ok_or(Limit::TupleFields)?;
        Ok(())
    }
}

/// The limits of a compilation or of reading a text, and when it began: what is asked whether it may go on. Time is processor time of the thread that
/// compiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    limits: Limits,
    started: Option<Began>,
}

impl Budget {
    /// How many nodes a walk visits between two looks at the clock.
    const STRIDE: usize = 4096;

    /// The budget of a compilation that has not begun: no time passes.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Budget { limits, started: None }
    }

    /// The budget of a compilation that begins now.
    #[must_use]
    pub fn start(limits: Limits) -> Self {
        // Models outlive forks, and their runs are shared out to threads.
        note_process();
        Budget { limits, started: Some(Began::now()) }
    }

    /// The limits.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Says whether there is time left.
    ///
    /// # Errors
    /// The time is over, or the token of [`compile_until`](crate::compile_until) is cancelled: [`Limit::CompileTime`] is exceeded.
    pub fn check_time(&self) -> Result<(), Diagnostic> {
        match self.started {
            Some(_) if is_compile_ended() => Err(self.limits.exceeded(Limit::CompileTime)),
            // Without any time there is none for the first look either, whatever the clock's steps are.
            Some(started)
                if self.limits.compile_time.is_zero() || started.is_longer_ago_than(self.limits.compile_time) =>
            {
                Err(self.limits.exceeded(Limit::CompileTime))
            }
            _ => Ok(()),
        }
    }

    /// The same, for the visit of a walk with this number; looks at the clock rarely.
    ///
    /// # Errors
    /// As `check_time`.
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
        assert!(problem.hints()[0].ends_with("or raise `Limits::nesting`"), "{problem}");
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
