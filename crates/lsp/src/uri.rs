//! Conversion between the URI by which an editor identifies a text and the text's name, which is a path if the text is a file. Only `file` URIs of
//! this machine are paths (RFC 8089); other URIs are used as names unchanged.

use lsp_types::Uri;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use std::path::{Path, PathBuf};

/// The bytes of a path that a URI must write as escapes such as `%20`: those that RFC 3986 does not allow in a path, and `%`
/// itself.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The path of the file at `uri`; `None` if this is not a `file` URI of this machine.
pub(crate) fn path_of(uri: &Uri) -> Option<PathBuf> {
    let (scheme, rest) = uri.as_str().split_once(':')?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    // The host of a file of this machine is empty or `localhost`.
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = rest.split(['?', '#']).next().filter(|path| path.starts_with('/'))?;
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            ".." => drop(segments.pop()),
            "." => {}
            segment => segments.push(segment),
        }
    }
    let path = format!("/{}", segments.join("/"));
    let path = percent_decode_str(&path).decode_utf8().ok()?;
    // `/c:/models` means `c:/models` on systems where paths begin with a drive.
    let drive = if cfg!(windows) { path.strip_prefix('/') } else { None };
    Some(PathBuf::from(drive.unwrap_or(&path)))
}

/// The name of the text at `uri`: the path if `uri` is a `file` URI of this machine (in any spelling), else the URI itself.
pub(crate) fn name_of(uri: &Uri) -> String {
    path_of(uri).map_or_else(|| uri.as_str().to_owned(), |path| path.display().to_string())
}

/// The URI of the file `name`, for a file that the editor has not opened; `None` if `name` is not an absolute path.
pub fn uri_of(name: &str) -> Option<Uri> {
    if !Path::new(name).is_absolute() {
        return None;
    }
    let path = if cfg!(windows) { format!("/{}", name.replace('\\', "/")) } else { name.to_owned() };
    format!("file://{}", utf8_percent_encode(&path, ENCODED)).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn addresses_of_one_file_are_one_name() {
        let name = |uri: &str| name_of(&uri.parse().unwrap());
        for uri in ["file:///m/a%20b/%C3%A9.cem", "file:///m/x/../a%20b/%C3%A9.cem", "file:///m/a%20b/%c3%a9.cem"] {
            assert_eq!(name(uri), "/m/a b/é.cem");
        }
        assert_eq!(uri_of("/m/a b/é.cem").unwrap().as_str(), "file:///m/a%20b/%C3%A9.cem");
        assert_eq!(name("untitled:Untitled-1"), "untitled:Untitled-1");
        assert_eq!(name("FILE://localhost/m/./a.cem"), "/m/a.cem");
        assert_eq!(name("file://elsewhere/m/a.cem"), "file://elsewhere/m/a.cem");
        assert!(uri_of("untitled:Untitled-1").is_none());
        // Each character that has a meaning in a URI survives the conversion.
        let odd = "/m/100% [a]{b} #1 ?2 ^`|\\\"<>é.cem";
        assert_eq!(name_of(&uri_of(odd).unwrap()), odd);
    }
}
