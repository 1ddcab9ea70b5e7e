//! Reads the imports of a stored script, a piece at a time.

use std::sync::Arc;

use spdy_cache::body::Body;
use spdy_markup::es_modules;

use crate::body::content_coding::Coding;
use crate::body::decoder::Decoder;

/// The longest script that is read, bytes of its text.
const MAX_SCRIPT_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of imports of one script that are stored.
const MAX_IMPORTS: usize = 256;
/// The text that is searched at a time, bytes.
const WINDOW_BYTES: usize = 32 * 1024;
/// The text before it that is searched again: a specifier may begin there. More than the longest specifier.
const OVERLAP_BYTES: usize = 4 * 1024;

/// Maximum number of scripts that are read at a time.
const MAX_READS: usize = 16;

/// Counts the scripts that are being read.
#[derive(Debug, Default)]
pub(crate) struct ModuleReads(Arc<()>);

impl ModuleReads {
    /// Counts one more script, until the result is dropped; `None` if there are too many.
    pub(crate) fn begin(&self) -> Option<Arc<()>> {
        (Arc::strong_count(&self.0) <= MAX_READS).then(|| self.0.clone())
    }
}

/// Returns the specifiers in a script that is stored as `body` under `coding`, each once. If it cannot be decoded, those before the error.
/// Other tasks run after each step.
pub(crate) async fn read(body: &Body, coding: Coding) -> Vec<String> {
    let mut search = ImportSearch::default();
    let mut decoder = Decoder::new(coding, MAX_SCRIPT_BYTES);
    let chunk_len = decoder.chunk_len();
    for chunk in body.chunks().flat_map(|chunk| chunk.chunks(chunk_len)) {
        let Ok(text) = decoder.write(chunk) else {
            return search.specifiers;
        };
        search.add(&text).await;
    }
    if let Ok(rest) = decoder.finish() {
        search.add(&rest).await;
    }
    search.finish()
}

/// Searches a text that arrives in pieces.
#[derive(Default)]
struct ImportSearch {
    /// The text that is not searched yet, with the overlap before it.
    window: Vec<u8>,
    specifiers: Vec<String>,
}

impl ImportSearch {
    /// Searches `text`, a window at a time.
    async fn add(&mut self, text: &[u8]) {
        for part in text.chunks(WINDOW_BYTES) {
            self.window.extend_from_slice(part);
            if self.window.len() >= WINDOW_BYTES {
                self.search_window();
                let end = self.window.len();
                self.window.drain(..end - OVERLAP_BYTES);
            }
            tokio::task::yield_now().await;
        }
    }

    fn finish(mut self) -> Vec<String> {
        self.search_window();
        self.specifiers
    }

    fn search_window(&mut self) {
        let text = String::from_utf8_lossy(&self.window);
        for specifier in es_modules::specifiers(&text) {
            if self.specifiers.len() == MAX_IMPORTS {
                return;
            }
            if !self.specifiers.iter().any(|known| known == specifier) {
                self.specifiers.push(specifier.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::FutureExt;

    use super::*;
    use crate::body::encoder::encode;

    fn imports(script: &str, coding: Coding) -> Vec<String> {
        let body = Body::copy_of(&encode(
            &[Bytes::copy_from_slice(script.as_bytes())],
            coding,
        ));
        let mut reading = Box::pin(read(&body, coding));
        loop {
            if let Some(found) = reading.as_mut().now_or_never() {
                return found;
            }
        }
    }

    #[test]
    fn imports_of_a_long_script_are_found_in_each_coding() {
        let filler = "let a = 'text';\n".repeat(5000);
        let script =
            format!("import 'one';{filler}import('./two.js');{filler}export * from \"three\"");
        for coding in [Coding::Identity, Coding::Gzip, Coding::Brotli, Coding::Zstd] {
            assert_eq!(
                imports(&script, coding),
                ["one", "./two.js", "three"],
                "{coding:?}"
            );
        }
    }

    #[test]
    fn the_number_of_reads_is_limited() {
        let reads = ModuleReads::default();
        let mut begun: Vec<_> = (0..MAX_READS).map(|_| reads.begin()).collect();
        assert!(begun.iter().all(Option::is_some) && reads.begin().is_none());
        begun.pop();
        assert!(reads.begin().is_some());
    }

    #[test]
    fn imports_are_limited_and_each_is_stored_once() {
        let many: String = (0..2 * MAX_IMPORTS)
            .map(|n| format!("import '{n}';import '{n}';"))
            .collect();
        assert_eq!(imports(&many, Coding::Identity).len(), MAX_IMPORTS);
        let at_the_border = "x".repeat(WINDOW_BYTES - 4);
        assert_eq!(
            imports(
                &format!("{at_the_border} import './a.js'"),
                Coding::Identity
            ),
            ["./a.js"]
        );
    }

    #[test]
    fn a_script_that_cannot_be_decoded_or_is_too_long_has_the_imports_before_that() {
        let body = Body::copy_of(b"import 'a'");
        let read_as_gzip = read(&body, Coding::Gzip).now_or_never();
        assert_eq!(read_as_gzip, Some(Vec::new()));
        let long = format!("import 'a';{}import 'b'", " ".repeat(MAX_SCRIPT_BYTES));
        assert_eq!(imports(&long, Coding::Gzip), ["a"]);
    }
}
