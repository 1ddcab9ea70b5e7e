//! Rewrites a style sheet: it is buffered to its last byte. A sheet that is longer than the buffer is rewritten in parts, each up to the end of a
//! rule.
//!
//! ```text
//! bytes ── coding undone ──▶ held, up to 8 MiB ──▶ rewritten at its end      the result is known, and may be pinned
//!                              │ longer
//!                              ▼
//!                            up to its last whole rule ──▶ rewritten and returned; and so on
//!                            no such place, or not UTF-8 ─▶ the rest passes as it came, if the sheet is the site's own;
//!                                                           a proxied one is imported from its host instead
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use spdy_rewrite::css::{self, StylesheetContext};
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::integrity::Digests;
use spdy_rewrite::rules::Rules;

use crate::body::decoder::{CodingError, Decoder};
use crate::rewrite::stylesheet_index::StylesheetResult;

/// Maximum length of the buffered text of a sheet, bytes.
const MAX_BUFFER_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct StylesheetRewriter {
    /// `None` once it has ended.
    decoder: Option<Decoder>,
    buffer: Vec<u8>,
    max_buffer_bytes: usize,
    rules: Arc<Rules>,
    sheet: Box<StylesheetContext>,
    charset: Option<String>,
    progress: StylesheetProgress,
    references: Vec<Reference>,
    /// Present after it was rewritten as a whole.
    result: Option<Box<StylesheetResult>>,
}

/// How much of it was returned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum StylesheetProgress {
    /// Nothing: all of it is buffered.
    Buffering,
    /// Its beginning.
    Partial,
    /// The rest passes unchanged.
    PassThrough,
    /// An `@import` of the sheet at its host, in place of its text.
    ImportOnly,
}

impl StylesheetRewriter {
    pub(crate) fn new(
        decoder: Decoder,
        rules: &Arc<Rules>,
        sheet: Box<StylesheetContext>,
        charset: Option<String>,
    ) -> Self {
        Self {
            decoder: Some(decoder),
            buffer: Vec::new(),
            max_buffer_bytes: MAX_BUFFER_BYTES,
            rules: rules.clone(),
            sheet,
            charset,
            progress: StylesheetProgress::Buffering,
            references: Vec::new(),
            result: None,
        }
    }

    /// Bytes to [`write`](Self::write) at a time.
    pub(crate) fn chunk_len(&self) -> usize {
        self.decoder.as_ref().map_or(usize::MAX, Decoder::chunk_len)
    }

    /// The output for `piece`.
    pub(crate) fn write(&mut self, piece: &[u8]) -> Result<Bytes, CodingError> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(Bytes::new());
        };
        let text = decoder.write(piece)?;
        Ok(self.take(text))
    }

    fn take(&mut self, text: Vec<u8>) -> Bytes {
        match self.progress {
            StylesheetProgress::PassThrough => return text.into(),
            StylesheetProgress::ImportOnly => return Bytes::new(),
            StylesheetProgress::Buffering | StylesheetProgress::Partial => self.buffer.extend(text),
        }
        if self.buffer.len() <= self.max_buffer_bytes {
            return Bytes::new();
        }
        let (rules, charset) = (&self.rules, self.charset.as_deref());
        let beginning = css::rewrite_prefix(rules, &self.sheet, &self.buffer, charset);
        // The rest is parsed again with the next bytes, so a part must have a minimum length.
        match beginning.filter(|(_, read)| *read >= self.max_buffer_bytes / 2) {
            Some((beginning, read)) => {
                self.references.extend(beginning.references);
                let output = beginning.body.into_owned().into();
                self.buffer.drain(..read);
                self.charset = Some(css::UTF_8.to_owned());
                self.progress = StylesheetProgress::Partial;
                output
            }
            None => {
                let buffered = std::mem::take(&mut self.buffer);
                match self
                    .sheet
                    .import_only_body()
                    .filter(|_| self.progress == StylesheetProgress::Buffering)
                {
                    Some(elsewhere) => {
                        self.progress = StylesheetProgress::ImportOnly;
                        elsewhere.into()
                    }
                    None => {
                        self.progress = StylesheetProgress::PassThrough;
                        buffered.into()
                    }
                }
            }
        }
    }

    /// The remaining output at the end.
    pub(crate) fn finish(&mut self) -> Result<Bytes, CodingError> {
        let Some(decoder) = self.decoder.take() else {
            return Ok(Bytes::new());
        };
        let rest = decoder.finish()?;
        let mut output = Vec::from(self.take(rest));
        if matches!(
            self.progress,
            StylesheetProgress::PassThrough | StylesheetProgress::ImportOnly
        ) {
            return Ok(output.into());
        }
        let (rules, charset) = (&self.rules, self.charset.as_deref());
        let end = css::rewrite_bytes(rules, &self.sheet, &self.buffer, charset);
        let is_elsewhere = end.left.is_some() && matches!(end.body, Cow::Owned(_));
        if self.progress == StylesheetProgress::Partial && is_elsewhere {
            // An `@import` after rules has no effect.
            output.extend_from_slice(&self.buffer);
            return Ok(output.into());
        }
        self.references.extend(end.references);
        // A sheet that only imports another has no result for a pin.
        if self.progress == StylesheetProgress::Buffering && !is_elsewhere {
            let served = Digests::of(&end.body);
            let original = match &end.body {
                Cow::Borrowed(_) => served.clone(),
                Cow::Owned(_) => Digests::of(&self.buffer),
            };
            self.result = Some(Box::new(StylesheetResult { original, served }));
        }
        output.extend_from_slice(&end.body);
        Ok(output.into())
    }

    /// The result, if it was rewritten as a whole.
    pub(crate) fn take_result(&mut self) -> Option<StylesheetResult> {
        self.result.take().map(|result| *result)
    }

    /// The references found since the last call.
    pub(crate) fn take_references(&mut self) -> Vec<Reference> {
        std::mem::take(&mut self.references)
    }
}

#[cfg(test)]
mod tests {
    use spdy_rewrite::rules::config::Config;
    use url::Url;

    use super::*;
    use crate::body::content_coding::Coding;

    const RULE: &str = ".a { background: url(https://cdn.test/a.png) }\n";

    fn rules() -> Arc<Rules> {
        let site = Url::parse("https://www.site.test/").expect("a URL");
        let kinds = ["image", "style"];
        let host = serde_json::json!({ "hosts": [{ "host": "cdn.test", "kinds": kinds }] });
        let config: Config = serde_json::from_value(host).expect("the rules are valid");
        Arc::new(Rules::compile(&site, &config, None).expect("the rules are valid"))
    }

    /// The result for a sheet of the site's own with a buffer of 1000 bytes, and its references.
    fn rewritten(text: &[u8], charset: Option<&str>) -> (Vec<u8>, usize, bool) {
        let rules = rules();
        rewrite(StylesheetContext::own(rules.site()), &rules, text, charset)
    }

    fn rewrite(
        sheet: StylesheetContext,
        rules: &Arc<Rules>,
        text: &[u8],
        charset: Option<&str>,
    ) -> (Vec<u8>, usize, bool) {
        let sheet = Box::new(sheet);
        let decoder = Decoder::new(Coding::Identity, 1 << 20);
        let mut rewriter = StylesheetRewriter {
            max_buffer_bytes: 1000,
            ..StylesheetRewriter::new(decoder, rules, sheet, charset.map(str::to_owned))
        };
        let mut output = Vec::new();
        for piece in text.chunks(333) {
            output.extend_from_slice(&rewriter.write(piece).expect("no coding"));
            assert!(
                rewriter.buffer.len() <= 1000,
                "{} bytes are held",
                rewriter.buffer.len()
            );
        }
        output.extend_from_slice(&rewriter.finish().expect("no coding"));
        let references = rewriter.take_references().len();
        (output, references, rewriter.take_result().is_some())
    }

    #[test]
    fn stylesheet_above_buffer_limit_is_rewritten_in_parts() {
        for (rules, expects_result) in [(2, true), (20, true), (100, false)] {
            let text = RULE.repeat(rules);
            let expected = text.replace("https://cdn.test", "/.spdy/1/-/s/cdn.test");
            let (output, references, has_result) = rewritten(text.as_bytes(), None);
            assert_eq!(String::from_utf8_lossy(&output), expected);
            assert_eq!(
                (references, has_result),
                (rules, expects_result),
                "{rules} rules"
            );
        }
    }

    #[test]
    fn unrewritable_proxied_stylesheet_becomes_an_import() {
        let rules = rules();
        let proxied = rules.open("/.spdy/1/-/s/cdn.test/a.css?b'\u{22}").ok();
        assert!(proxied.is_none(), "no URL has a quote in it");
        let proxied = rules
            .open("/.spdy/1/-/s/cdn.test/css/a.css")
            .expect("a proxied URL");
        let import = "\u{feff}@import \"https://cdn.test/css/a.css\";\n";
        let utf_16 = |text: &str| -> Vec<u8> {
            let marked = format!("\u{feff}{text}");
            marked.encode_utf16().flat_map(u16::to_le_bytes).collect()
        };
        let long = "a { b: url(c.png); ".repeat(100);
        for (text, charset, is_served) in [
            (utf_16("a { b: url(/c.png) }"), None, false),
            (utf_16("a { b: url(c.png) url(data:,d) }"), None, true),
            (
                "/* \u{65e5} */ a { b: url(/c.png) }".into(),
                Some("shift_jis"),
                false,
            ),
            (
                b"a { b: url(/\xe9.png) }".to_vec(),
                Some("windows-1252"),
                false,
            ),
            (
                b"a { b: url(\xe9.png) }".to_vec(),
                Some("windows-1252"),
                true,
            ),
            (long.into_bytes(), None, false),
        ] {
            let sheet = StylesheetContext::moved(&rules, &proxied, &proxied);
            let (output, _, has_result) = rewrite(sheet, &rules, &text, charset);
            let expected = if is_served { &text } else { import.as_bytes() };
            assert_eq!(
                String::from_utf8_lossy(&output),
                String::from_utf8_lossy(expected)
            );
            assert_eq!(
                has_result, is_served,
                "what imports it is what no page pinned"
            );
        }
        // Text that is not well-formed is read anyway.
        let sheet = StylesheetContext::moved(&rules, &proxied, &proxied);
        let (output, ..) = rewrite(sheet, &rules, b"/* \xe9\xff */ a { b: url(/c.png) }", None);
        assert_eq!(
            output,
            b"/* \xe9\xff */ a { b: url(/.spdy/1/-/s/cdn.test/c.png) }"
        );
    }

    #[test]
    fn long_stylesheet_without_rule_end_passes_through() {
        let long = format!("{}@media all {{ {} }}", RULE.repeat(15), RULE.repeat(100));
        let (output, references, _) = rewritten(long.as_bytes(), None);
        let (begun, rest) = (15 * RULE.len(), &long[15 * RULE.len()..]);
        let expected = long[..begun].replace("https://cdn.test", "/.spdy/1/-/s/cdn.test");
        assert_eq!(String::from_utf8_lossy(&output), expected + rest);
        assert_eq!(references, 15);
        // And all of it where a letter of another encoding could look like anything.
        let text = RULE.repeat(100);
        let (output, references, _) = rewritten(text.as_bytes(), Some("shift_jis"));
        assert_eq!(
            (String::from_utf8_lossy(&output).as_ref(), references),
            (&text[..], 0)
        );
    }
}
