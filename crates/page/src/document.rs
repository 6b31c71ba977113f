//! The page as HTML: the template with its style, its script and its data. Foreign text reaches the page only as JSON in which `<` is escaped, so that
//! no text of a model ends the script or begins an element.

use serde::Serialize;

const TEMPLATE: &str = include_str!("../web/src/page.html");
const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
/// The policy of the page, with the hashes of its style and its script. The front end's build writes it.
const POLICY: &str = include_str!("../assets/policy.txt");

/// A page, with the content security policy for the HTTP response that sends it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    /// The page as HTML, with its style, its script and its data.
    pub html: String,
    /// The value of the header `Content-Security-Policy`. It allows the page's own script and style, by their hashes, and requests to the server that the
    /// page comes from.
    pub policy: String,
}

impl Document {
    pub(crate) fn of(data: &impl Serialize) -> Document {
        // Data of plain structs and strings can always be written.
        let data = serde_json::to_string(data).unwrap_or_default().replace('<', "\\u003c");
        let policy = POLICY.trim().to_owned();
        let parts = [("{{policy}}", &*policy), ("{{style}}", STYLE), ("{{data}}", &data), ("{{script}}", SCRIPT)];
        let mut html = String::with_capacity(TEMPLATE.len() + STYLE.len() + SCRIPT.len() + data.len());
        let mut rest = TEMPLATE;
        // Each mark is looked for in the template alone, because the data may contain one.
        while let Some((start, (mark, part))) =
            parts.iter().filter_map(|part| Some((rest.find(part.0)?, *part))).min_by_key(|(start, _)| *start)
        {
            html.push_str(&rest[..start]);
            html.push_str(part);
            rest = &rest[start + mark.len()..];
        }
        html.push_str(rest);
        Document { html, policy }
    }
}
