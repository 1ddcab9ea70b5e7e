//! Captures of connections: the bytes of two peers as packets and files.

pub(crate) mod file;
pub(crate) mod frames;
pub(crate) mod tcp;
pub(crate) mod tls;

use spdy_inspect::capture::Reader;
use spdy_inspect::event::{Event, EventKind, FrameRecord};
use spdy_inspect::inspector::{Inspector, Options};
use spdy_inspect::limits::Limits;
use spdy_inspect::timeline::Summary;

/// All results of an inspection.
pub(crate) struct Inspection {
    pub(crate) events: Vec<Event>,
}

impl Inspection {
    pub(crate) fn of(mut inspector: Inspector) -> Self {
        inspector.finish();
        let mut events = Vec::new();
        while let Some(event) = inspector.poll_event() {
            events.push(event);
        }
        Self { events }
    }

    /// Inspects `file`, in pieces of `piece` bytes.
    pub(crate) fn of_file(file: &[u8], options: Options, piece: usize) -> Self {
        let mut inspector = Inspector::new(options);
        let mut reader = Reader::new(Limits::default());
        for piece in file.chunks(piece) {
            reader.push(piece);
            while let Some(record) = reader.poll().expect("the file is valid") {
                inspector.record(&record);
            }
        }
        reader.finish().expect("the file is complete");
        Self::of(inspector)
    }

    pub(crate) fn frames(&self) -> Vec<&FrameRecord> {
        let frame = |event: &'_ Event| matches!(event.what, EventKind::Frame(_));
        let frames = self.events.iter().filter(|event| frame(event));
        frames
            .map(|event| match &event.what {
                EventKind::Frame(record) => &**record,
                _ => unreachable!("expected a frame"),
            })
            .collect()
    }

    /// The summary of the only session.
    pub(crate) fn summary(&self) -> &Summary {
        let mut summaries = self.events.iter().filter_map(|event| match &event.what {
            EventKind::SessionEnd(summary) => Some(&**summary),
            _ => None,
        });
        match (summaries.next(), summaries.next()) {
            (Some(summary), None) => summary,
            (first, second) => panic!(
                "expected one session, found {} and more: {:#?}",
                u8::from(first.is_some()) + u8::from(second.is_some()),
                self.events
            ),
        }
    }

    /// The findings, as text.
    pub(crate) fn findings(&self) -> Vec<String> {
        self.summary()
            .findings
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Frames without their times and offsets, for comparison.
    pub(crate) fn outline(&self) -> Vec<String> {
        let mut lines: Vec<_> = self
            .frames()
            .iter()
            .map(|record| {
                format!(
                    "{} {:08} {} {} {:?}",
                    record.direction,
                    record.offset,
                    record.frame.kind(),
                    record.len_bytes,
                    record.headers
                )
            })
            .collect();
        lines.sort();
        lines
    }
}
