//! Rewrites a page while it arrives. In a dry run ([`dry_run`](spdy_rewrite::rules::config::Config::dry_run)) the page is only parsed, and its
//! bytes are not changed.

use bytes::Bytes;
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::page_report::PageReport;

use crate::body::decoder::{CodingError, Decoder};

/// A page that is being rewritten.
#[derive(Debug)]
pub(crate) struct PageRewriter {
    /// `None` after its end, or if it cannot be decoded.
    inner: Option<(Decoder, Box<HtmlRewriter>)>,
    links: Vec<Reference>,
    is_tried: bool,
}

impl PageRewriter {
    /// A page that `decoder` decodes; its head has the references `links`.
    pub(crate) fn new(decoder: Decoder, page: HtmlRewriter, links: Vec<Reference>) -> Self {
        Self {
            inner: Some((decoder, Box::new(page))),
            links,
            is_tried: false,
        }
    }

    /// Makes it a dry run: its bytes are not changed.
    pub(crate) fn dry_run(self) -> Self {
        Self {
            is_tried: true,
            ..self
        }
    }

    /// Whether it is a dry run.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.is_tried
    }

    /// Bytes to [`write`](Self::write) at a time, so that the output of one write stays small.
    pub(crate) fn chunk_len(&self) -> usize {
        let decoder = self.inner.as_ref().map(|(decoder, _)| decoder);
        decoder.map_or(usize::MAX, Decoder::chunk_len)
    }

    /// Bytes to write at a time until there is output; `None` if the output of few bytes may have any length.
    pub(crate) fn first_chunk_len(&self) -> Option<usize> {
        let (decoder, _) = self.inner.as_ref()?;
        decoder.first_chunk_len()
    }

    /// The output for `piece`.
    pub(crate) fn write(&mut self, piece: Bytes) -> Result<Bytes, CodingError> {
        let text = self.rewrite(&piece);
        if !self.is_tried {
            return text;
        }
        if let Err(error) = text {
            tracing::debug!(%error, "cannot rewrite a page");
            self.inner = None;
        }
        Ok(piece)
    }

    /// Whether text is buffered that [`flush`](Self::flush) would return.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.is_tried
            && self
                .inner
                .as_ref()
                .is_some_and(|(_, page)| page.is_waiting())
    }

    /// The output that need not wait for more input.
    pub(crate) fn flush(&mut self) -> Bytes {
        let mut out = Vec::new();
        if self.is_waiting()
            && let Some((_, page)) = &mut self.inner
        {
            page.flush(&mut out);
        }
        out.into()
    }

    fn rewrite(&mut self, piece: &[u8]) -> Result<Bytes, CodingError> {
        let mut out = Vec::new();
        if let Some((decoder, page)) = &mut self.inner {
            page.write(&decoder.write(piece)?, &mut out);
        }
        Ok(out.into())
    }

    /// The remaining bytes at the end, and the result, in a dry run the possible one; `None` for a dry run that could not read the page.
    pub(crate) fn finish(&mut self) -> Result<(Bytes, Option<PageReport>), CodingError> {
        let Some((decoder, mut page)) = self.inner.take() else {
            return Ok((Bytes::new(), None));
        };
        let mut out = Vec::new();
        match decoder.finish() {
            Ok(rest) => page.write(&rest, &mut out),
            Err(_) if self.is_tried => return Ok((Bytes::new(), None)),
            Err(error) => return Err(error),
        }
        self.links.append(&mut page.take_references());
        let mut report = page.end(&mut out);
        self.links.append(&mut report.take_references());
        if self.is_tried {
            out.clear();
        }
        Ok((out.into(), Some(report)))
    }

    /// The references found since the last call.
    pub(crate) fn take_references(&mut self) -> Vec<Reference> {
        let mut all = std::mem::take(&mut self.links);
        if let Some((_, page)) = &mut self.inner {
            all.append(&mut page.take_references());
        }
        all
    }
}
