//! Errors for options about the format of values (`--date-format`, `--decimal`) that would have no effect in a run. A user who gives an option
//! expects an effect, so the option is rejected.

use crate::arguments::DataOptions;
use crate::evaluate::ValueSource;
use crate::failure::{Failure, usage};
use crate::inputs::InputSources;
use cembra::{QType, Scalar};
use cembra_table::{Form, Format};

/// The source of a value, as far as options distinguish sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    /// The values are in CSV or TSV.
    Csv,
    /// The values are in JSON or JSON lines.
    Json,
    /// The values are in Parquet or Arrow, whose columns have types.
    Typed,
    /// The values are given by `-s` on the command line.
    Constant,
}

use Origin::{Constant, Csv, Json, Typed};

/// The origins of values in data files.
const DATA: &[Origin] = &[Csv, Json, Typed];

/// The origins of all values.
const VALUES: &[Origin] = &[Csv, Json, Typed, Constant];

/// An option, and the values on which it has an effect.
struct Effect {
    option: &'static str,
    is_given: bool,
    /// The origins of the values on which the option has an effect.
    origins: &'static [Origin],
    /// The type of the values on which the option has an effect; `None` for all types.
    scalar: Option<Scalar>,
}

impl From<Format> for Origin {
    fn from(format: Format) -> Origin {
        match format {
            Format::Csv | Format::Tsv | Format::Table => Csv,
            Format::Json | Format::JsonLines => Json,
            Format::Parquet | Format::Arrow => Typed,
        }
    }
}

impl DataOptions {
    /// The options about values, in the order of the help.
    fn effects(&self) -> [Effect; 8] {
        let effect = |option, is_given, origins, scalar| Effect { option, is_given, origins, scalar };
        [
            effect("--data-format", self.data_format.is_some(), DATA, None),
            effect("--delimiter", self.delimiter.is_some(), &[Csv], None),
            effect("--decimal", self.decimal.is_some(), &[Csv], None),
            effect("--date-format", self.date_format.is_some(), VALUES, Some(Scalar::Date)),
            effect("--timestamp-format", self.timestamp_format.is_some(), VALUES, Some(Scalar::Timestamp)),
            effect("--timestamp-unit", self.timestamp_unit.is_some(), VALUES, Some(Scalar::Timestamp)),
            effect("--time-zone", self.time_zone.is_some(), &[Csv, Json, Constant], Some(Scalar::Timestamp)),
            effect("--batch-rows", self.batch_rows.is_some(), DATA, None),
        ]
    }

    /// Returns the first given option that has no effect on a model with tensors; `None` if every given option has an effect. A model with tensors
    /// reads no text except the values of `-s`; `has_constants` is true if `-s` gives values.
    pub(crate) fn of_rows(&self, has_constants: bool) -> Option<&'static str> {
        let null = (!self.null.is_empty()).then_some("--null");
        let is_of_rows = |effect: &&Effect| effect.is_given && !(has_constants && effect.origins.contains(&Constant));
        self.effects().iter().find(is_of_rows).map(|effect| effect.option).or(null)
    }

    /// Returns an error if a given option has no effect on the values of this run. The values come from data of the format `data` (`None` without
    /// data), and with `has_constants` also from `-s`. With `writes_text`, the results are CSV or a table. Then `--null` has an effect, because its
    /// text is written for missing values.
    pub(crate) fn check_origins(
        &self,
        data: Option<Format>,
        has_constants: bool,
        writes_text: bool,
        command: &'static str,
    ) -> Result<(), Failure> {
        let here = |origin: &Origin| match data {
            _ if *origin == Constant => has_constants,
            Some(format) => *origin == Origin::from(format),
            None => false,
        };
        let refuse = |option: &str, origins: &[Origin]| {
            let about = match origins {
                [Csv] => "CSV",
                [Csv, Json, Constant] => "CSV, JSON and `-s`",
                _ => "data",
            };
            let found = match data {
                None => "there is no DATA".to_owned(),
                Some(format) => format!("DATA is {}", format.name()),
            };
            Err(usage(command, format!("leave `{option}` out: it applies to {about}, but {found}")))
        };
        if let Some(effect) = self.effects().iter().find(|effect| effect.is_given && !effect.origins.iter().any(here)) {
            return refuse(effect.option, effect.origins);
        }
        if !self.null.is_empty() && !writes_text && !here(&Csv) {
            return refuse("--null", &[Csv]);
        }
        Ok(())
    }

    /// Returns an error if a given option is about a type (date, timestamp, number) that neither an input nor a column copied to the results has. If
    /// the data's columns have types (Parquet, Arrow), an option for dates or timestamps is also an error if the columns already have the option's
    /// type, because the option applies only to texts and whole numbers.
    pub(crate) fn check_types(&self, feed: &InputSources, command: &'static str) -> Result<(), Failure> {
        if let Some(counted) = feed.counted() {
            return self.check_counted(feed, counted, command);
        }
        let inputs = feed.fields().iter().map(|(_, qtype)| qtype);
        let kept = feed.kept().iter().filter_map(|kept| match &kept.form {
            Form::Values(qtype) => Some(qtype),
            Form::Verbatim | Form::Foreign(_) | Form::AsWritten => None,
        });
        // A column has the type text if its values do not have the format of the option.
        let text = feed.fields().iter().enumerate().find(|(at, (_, qtype))| {
            qtype.scalar() == Some(Scalar::Text) && matches!(feed.from(*at), ValueSource::Column(..))
        });
        let text = text.map(|(_, (name, _))| name.as_str());
        self.check_among(&inputs.chain(kept).collect::<Vec<_>>(), text, command)
    }

    /// Refuses options about a type, for data whose columns have types. An option is accepted if its type is in `counted`, the types read
    /// from whole numbers, or is the type of a value of `-s`.
    fn check_counted(&self, feed: &InputSources, counted: &[Scalar], command: &'static str) -> Result<(), Failure> {
        let (columns, constants): (Vec<_>, Vec<_>) =
            feed.fields().iter().enumerate().partition(|(at, _)| matches!(feed.from(*at), ValueSource::Column(..)));
        for Effect { option, scalar, .. } in self.effects().into_iter().filter(|effect| effect.is_given) {
            let Some(scalar) = scalar.filter(|scalar| !counted.contains(scalar)) else { continue };
            let is_of = |field: &&(usize, &(String, QType))| has(&field.1.1, scalar);
            if let Some((_, (name, _))) = columns.iter().find(is_of)
                && !constants.iter().any(|field| is_of(&field))
            {
                let of = scalar.short_name();
                let message = format!("leave `{option}` out: it applies to texts and whole numbers");
                return Err(usage(command, format!("{message}, but the column of `{name}` has the type {of} already")));
            }
        }
        let counted: Vec<QType> = counted.iter().map(|scalar| QType::Scalar(*scalar)).collect();
        let constants = constants.into_iter().map(|(_, (_, qtype))| qtype);
        self.check_among(&counted.iter().chain(constants).collect::<Vec<_>>(), None, command)
    }

    /// Returns an error if a given option is about a type (date, timestamp, number) that is not in `types`. `text` is the name of a text column;
    /// the message proposes to declare that column with the option's type.
    pub(crate) fn check_among(
        &self,
        types: &[&QType],
        text: Option<&str>,
        command: &'static str,
    ) -> Result<(), Failure> {
        for Effect { option, scalar, .. } in self.effects().into_iter().filter(|effect| effect.is_given) {
            let Some(scalar) = scalar.filter(|scalar| !types.iter().any(|qtype| has(qtype, *scalar))) else { continue };
            let name = scalar.short_name();
            let message = format!("leave `{option}` out: it applies to values of the type {name}, but none is read");
            return Err(usage(
                command,
                match text {
                    Some(text) => format!("{message}; or declare an input, as in `input {text}: {name}?`"),
                    None => message,
                },
            ));
        }
        Ok(())
    }
}

/// Returns true if values of `qtype` are of type `scalar`, or contain such values.
fn has(qtype: &QType, scalar: Scalar) -> bool {
    let mut open = vec![qtype];
    while let Some(qtype) = open.pop() {
        match qtype {
            QType::Tuple(fields) => open.extend(fields.iter()),
            QType::Array(_, of) if *of == scalar => return true,
            other if other.scalar() == Some(scalar) => return true,
            _ => {}
        }
    }
    false
}
