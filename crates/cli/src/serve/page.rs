//! The page: one file each of HTML, style and script. A server sends the three files as they are, or puts the data of a
//! finished run into the first; a frozen page is one file with the data.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use sha2::{Digest, Sha256};

use super::response::Response;

/// The document.
pub(super) const HTML: &str = include_str!("page/index.html");
/// Its style.
const CSS: &str = include_str!("page/page.css");
/// Its script.
const SCRIPT: &str = include_str!("page/page.js");

/// The lines of the document that fetch the style and the script.
const STYLE_LINE: &str = "<link rel=\"stylesheet\" href=\"page.css\">\n";
const SCRIPT_LINE: &str = "<script src=\"page.js\" defer></script>\n";

/// The style or the script, by its path; `None` for any other path.
pub(super) fn part(path: &str) -> Option<Response> {
    match path {
        "/page.css" => Some(Response::of("text/css; charset=utf-8", CSS.as_bytes())),
        "/page.js" => Some(Response::of("text/javascript; charset=utf-8", SCRIPT.as_bytes())),
        _ => None,
    }
}

/// The document with the data of a finished run, as JSON, for a server. `plain` is the markup that a reader without
/// scripts sees.
pub(super) fn with_data(data: &str, plain: &str) -> String {
    filled(HTML, data, plain, "")
}

/// The page as one self-contained file that opens no connection. `data` is JSON; `plain` is the markup that a reader
/// without scripts sees.
pub(crate) fn frozen(data: &str, plain: &str) -> String {
    // The policy allows the page's own script and style, and no connection.
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; \
         script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'\">\n<style>{CSS}</style>\n",
        hash(CSS),
        hash(SCRIPT),
    );
    let html = HTML.replacen(SCRIPT_LINE, "", 1).replacen(STYLE_LINE, &head, 1);
    filled(&html, data, plain, &format!("<script>{SCRIPT}</script>\n"))
}

/// A document with data, with markup for readers without scripts, and with `end` before the end of its body.
fn filled(html: &str, data: &str, plain: &str, end: &str) -> String {
    // In JSON, this character occurs only in strings. Escaping it prevents a unit's text from ending the element.
    let data = data.replace('<', "\\u003c");
    let end = format!("<script type=\"application/json\" id=\"frozen\">{data}</script>\n{end}</body>");
    html.replacen("</body>", &end, 1).replacen("<body>\n", &format!("<body>\n<noscript>{plain}</noscript>\n"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_page_is_one_file_whose_parts_end_where_they_should() {
        assert!(!CSS.contains("</style") && !SCRIPT.contains("</script"));
        assert!(HTML.contains(STYLE_LINE) && HTML.contains(SCRIPT_LINE));
        let page = frozen("{\"a\":\"</script><script>\"}", "<p>plain</p>");
        for fetched in ["href=\"page", "src=", "@import", "url("] {
            assert!(!page.contains(fetched), "{fetched}");
        }
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(page.contains("{\"a\":\"\\u003c/script>\\u003cscript>\"}") && page.ends_with("</body>\n</html>\n"));
    }
}
