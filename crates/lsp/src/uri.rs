//! What texts are called: the address that an editor gives them, and the path that `use` and the disk know.

use lsp_types::Uri;
use std::path::PathBuf;
use url::Url;

/// The path of a text that is a file.
pub(crate) fn path_of(uri: &Uri) -> Option<PathBuf> {
    let url = Url::parse(uri.as_str()).ok()?;
    if url.scheme() == "file" { url.to_file_path().ok() } else { None }
}

/// What the server calls a text: a file by its path, whatever way its address is written, and others by their address.
pub(crate) fn name_of(uri: &Uri) -> String {
    path_of(uri).map_or_else(|| uri.as_str().to_owned(), |path| path.display().to_string())
}

/// The address of a file that no editor gave one.
pub(crate) fn uri_of(name: &str) -> Option<Uri> {
    Url::from_file_path(name).ok()?.as_str().parse().ok()
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
        assert!(uri_of("untitled:Untitled-1").is_none());
    }
}
