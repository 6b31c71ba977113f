//! The formats of rows in requests and answers (JSON, JSON lines, Arrow, CSV), and their media types.

use crate::problem::Problem;
use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderMap};

/// A format of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowFormat {
    /// An object, or an array of objects.
    Json,
    /// An object on each line.
    Lines,
    /// A stream of Arrow IPC.
    Arrow,
    Csv,
}

impl RowFormat {
    pub(crate) const ALL: [RowFormat; 4] = [RowFormat::Json, RowFormat::Lines, RowFormat::Arrow, RowFormat::Csv];

    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            RowFormat::Json => "application/json",
            RowFormat::Lines => "application/x-ndjson",
            RowFormat::Arrow => "application/vnd.apache.arrow.stream",
            RowFormat::Csv => "text/csv",
        }
    }

    /// The value of the header `Content-Type` of an answer in this format.
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            RowFormat::Csv => "text/csv; charset=utf-8; header=present",
            other => other.media_type(),
        }
    }

    /// The format of a request's body with the media type `media_type`.
    ///
    /// # Errors
    /// If no format has this media type.
    pub(crate) fn of_request(media_type: &str) -> Result<RowFormat, Problem> {
        let found = RowFormat::ALL.into_iter().find(|format| format.media_type() == media_type);
        found.ok_or_else(|| {
            let detail = format!("the body must be one of {}", RowFormat::list());
            Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail)
        })
    }

    /// The format of the answer: the one that the header `Accept` prefers. Among equally preferred formats, the format
    /// of the request comes first.
    ///
    /// # Errors
    /// If `Accept` allows no format.
    pub(crate) fn of_answer(headers: &HeaderMap, request: RowFormat) -> Result<RowFormat, Problem> {
        if !headers.contains_key(ACCEPT) {
            return Ok(request);
        }
        let ranges: Vec<(String, f32)> = headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(range)
            .collect();
        let mut best = (0.0, None);
        // The request's own format comes first, and another one only if it is preferred.
        for format in [request].into_iter().chain(RowFormat::ALL) {
            let quality = quality(&ranges, format.media_type());
            if quality > best.0 {
                best = (quality, Some(format));
            }
        }
        best.1.ok_or_else(|| {
            let detail = format!("the header `Accept` must allow one of {}", RowFormat::list());
            Problem::new(StatusCode::NOT_ACCEPTABLE, "accept", detail)
        })
    }

    fn list() -> String {
        RowFormat::ALL.map(RowFormat::media_type).join(", ")
    }
}

/// A range of media types in `Accept`, and its quality.
fn range(text: &str) -> (String, f32) {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().unwrap_or_default().to_ascii_lowercase();
    let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    let quality =
        quality.and_then(|quality| quality.parse().ok()).filter(|quality: &f32| (0.0..=1.0).contains(quality));
    (range, quality.unwrap_or(1.0))
}

/// The quality of a media type: that of the most precise range that has it.
fn quality(ranges: &[(String, f32)], media_type: &str) -> f32 {
    let family = media_type.split('/').next().unwrap_or_default();
    let precision = |range: &str| match range.split_once('/') {
        _ if range == media_type => Some(2),
        Some((own, "*")) if own == family => Some(1),
        Some(("*", "*")) => Some(0),
        _ => None,
    };
    let fitting = ranges.iter().filter_map(|(range, quality)| Some((precision(range)?, *quality)));
    fitting.max_by_key(|(precision, _)| *precision).map_or(0.0, |(_, quality)| quality)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_the_format_that_is_preferred() {
        let of = |accept: &str, request| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            RowFormat::of_answer(&headers, request).ok()
        };
        for request in RowFormat::ALL {
            assert_eq!(of("*/*", request), Some(request));
            assert_eq!(of("text/csv", request), Some(RowFormat::Csv));
            assert_eq!(of("text/html, image/png", request), None);
            assert_eq!(of("*/*;q=0.1, application/x-ndjson", request), Some(RowFormat::Lines));
        }
        assert_eq!(of("text/*", RowFormat::Json), Some(RowFormat::Csv));
        assert_eq!(of("application/*", RowFormat::Csv), Some(RowFormat::Json));
        assert_eq!(of("*/*, application/json;q=0", RowFormat::Json), Some(RowFormat::Lines));
        assert_eq!(of("application/json;q=0.5, text/csv;q=0.6", RowFormat::Json), Some(RowFormat::Csv));
    }
}
