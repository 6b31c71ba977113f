//! Days and moments in JSON: the texts that the library reads and writes, for fields of structs that derive serde's traits.

use cembra::{Date, Timestamp};
use serde::{Deserialize, Deserializer, Serializer, de};
use std::borrow::Cow;

/// A text that borrows from the JSON where it can.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Cow<'de, str>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'t>(#[serde(borrow)] Cow<'t, str>);
    Text::deserialize(from).map(|Text(text)| text)
}

/// `2027-03-01`.
pub(crate) mod day {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(day: &Date, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(day)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Date, D::Error> {
        Date::from_text(&text(from)?).map_err(de::Error::custom)
    }
}

/// `2027-03-01T08:30:00Z`.
pub(crate) mod moment {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(moment: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(moment)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        Timestamp::from_text(&text(from)?).map_err(de::Error::custom)
    }
}
