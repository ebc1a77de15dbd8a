//! The files of the page: HTML, style and script. For a live run, a server sends the three files as they are. For a
//! finished run, a server inserts the run's data into the HTML. A frozen page is a single file with the HTML, the
//! style, the script and the data.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use sha2::{Digest, Sha256};

use super::response::Response;

/// The HTML document.
pub(super) const HTML: &str = include_str!("page/index.html");
/// The style of the document.
const CSS: &str = include_str!("page/page.css");
/// The script of the document.
const SCRIPT: &str = include_str!("page/page.js");

/// The lines of the document that fetch the style and the script.
const STYLE_LINE: &str = "<link rel=\"stylesheet\" href=\"page.css\">\n";
const SCRIPT_LINE: &str = "<script src=\"page.js\" defer></script>\n";

/// The style or the script, chosen by the path; `None` for any other path.
pub(super) fn part(path: &str) -> Option<Response> {
    match path {
        "/page.css" => Some(Response::of("text/css; charset=utf-8", CSS.as_bytes())),
        "/page.js" => Some(Response::of("text/javascript; charset=utf-8", SCRIPT.as_bytes())),
        _ => None,
    }
}

/// The document for a server, with the data of a finished run. `data` is JSON. A browser without scripts shows the
/// markup `plain`.
pub(super) fn with_data(data: &str, plain: &str) -> String {
    filled(HTML, data, plain, "")
}

/// The page as one self-contained file that opens no connection. `data` is JSON. A browser without scripts shows the
/// markup `plain`.
pub(crate) fn frozen(data: &str, plain: &str) -> String {
    // The content policy allows only the page's own script and style, and no connection.
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

/// Inserts the data, the markup for browsers without scripts, and `end` into the body of a document.
fn filled(html: &str, data: &str, plain: &str, end: &str) -> String {
    // In JSON, `<` occurs only in strings. It is escaped, so that no text of a unit can end the `script` element.
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
