//! Serde for the types of fields, with the feature `serde`. Dates, timestamps and durations are serialised as the texts that they display as, which
//! JSON and CSV have too. An optional is serialised as its value, or as `None` if it is missing.

use crate::{Date, Duration, Optional, TimeTextError, Timestamp};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;

/// A visitor that parses a text as a `T`, such as a date, for Serde.
struct TextOf<T> {
    /// An example of a text that is a `T`, for error messages.
    example: &'static str,
    read: fn(&str) -> Result<T, TimeTextError>,
}

impl<T> Visitor<'_> for TextOf<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.example)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

macro_rules! texts {
    ($($ty:ty, $read:path, $example:literal;)*) => { $(
        impl Serialize for $ty {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $ty {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(TextOf { example: $example, read: $read })
            }
        }
    )* };
}

texts! {
    Date, Date::from_text, "a date as 2026-11-20";
    Timestamp, Timestamp::from_data_text, "a timestamp as 2026-11-20T10:15:00Z";
    Duration, Duration::from_data_text, "a duration as P1DT12H";
}

impl<T: Copy + Serialize> Serialize for Optional<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de, T: Copy + Deserialize<'de>> Deserialize<'de> for Optional<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<T>::deserialize(deserializer)?.map_or_else(Optional::missing, Optional::present))
    }
}
