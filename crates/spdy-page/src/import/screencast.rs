//! The window of a browser at each change during a load, from the DevTools screencast.

use std::borrow::Cow;
use std::time::Duration;

use data_encoding::BASE64;
use serde::Deserialize;

use crate::import::assemble::seconds;

/// Maximum size of all screenshots, bytes; later ones are ignored.
const MAX_BYTES: usize = 64 << 20;

/// The window at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Screenshot {
    /// When it was displayed, from the start of the load.
    pub at: Duration,
    /// The picture.
    pub jpeg: Vec<u8>,
}

/// A `Page.screencastFrame` event.
#[derive(Deserialize)]
pub(crate) struct FrameEvent<'a> {
    /// Base64. JSON can escape its slashes.
    #[serde(borrow)]
    data: Cow<'a, str>,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    /// Seconds since 1970 at which the frame was displayed.
    timestamp: f64,
}

/// All frames of one load.
#[derive(Clone, Debug)]
pub(crate) struct Screencast {
    /// Seconds since 1970 and the JPEG picture.
    frames: Vec<(f64, Vec<u8>)>,
    remaining_bytes: usize,
    is_cut: bool,
}

impl Default for Screencast {
    fn default() -> Self {
        Self {
            frames: Vec::new(),
            remaining_bytes: MAX_BYTES,
            is_cut: false,
        }
    }
}

impl Screencast {
    /// Stores the frame, up to the limit. A frame that is not valid is ignored.
    pub(crate) fn take(&mut self, event: &FrameEvent<'_>) {
        let Ok(jpeg) = BASE64.decode(event.data.as_bytes()) else {
            return;
        };
        if jpeg.is_empty() || !event.metadata.timestamp.is_finite() {
            return;
        }
        match self.remaining_bytes.checked_sub(jpeg.len()) {
            Some(remaining) if !self.is_cut => {
                self.remaining_bytes = remaining;
                self.frames.push((event.metadata.timestamp, jpeg));
            }
            _ => self.is_cut = true,
        }
    }

    /// The frames in the order of their display; only the last one from before `origin`, which is seconds since 1970.
    pub(crate) fn screenshots(&self, origin: f64) -> Vec<Screenshot> {
        let mut shown: Vec<&(f64, Vec<u8>)> = self.frames.iter().collect();
        shown.sort_by(|one, other| one.0.total_cmp(&other.0));
        let before = shown.iter().filter(|shot| shot.0 <= origin).count();
        shown.drain(..before.saturating_sub(1));
        let screenshot = |(at, jpeg): &(f64, Vec<u8>)| Screenshot {
            at: seconds(at - origin),
            jpeg: jpeg.clone(),
        };
        shown.into_iter().map(screenshot).collect()
    }

    /// A sentence about missing frames, if some are missing.
    pub(crate) fn remark(&self) -> Option<String> {
        let remark = "the screenshots of the load exceed 64 MiB: the later ones are missing";
        self.is_cut.then(|| remark.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(screencast: &mut Screencast, at: f64, data: &str) {
        let event = format!(
            r#"{{"data": "{data}", "metadata": {{"timestamp": {at}, "deviceWidth": 800}}, "sessionId": 1}}"#
        );
        screencast.take(&serde_json::from_str(&event).expect("the event is valid"));
    }

    #[test]
    fn screenshots_are_in_order_with_one_from_before_the_load() {
        let mut screencast = Screencast::default();
        take(&mut screencast, 10.5, "Yg==");
        take(&mut screencast, 9.5, "eA==");
        take(&mut screencast, 9.75, "YQ==");
        take(&mut screencast, 11.0, "not base64");
        let shots = screencast.screenshots(10.0);
        let shots: Vec<_> = shots.iter().map(|shot| (shot.at, &shot.jpeg[..])).collect();
        assert_eq!(
            shots,
            [
                (Duration::ZERO, &b"a"[..]),
                (Duration::from_millis(500), &b"b"[..])
            ]
        );
        assert_eq!(screencast.remark(), None);
    }

    #[test]
    fn frames_past_the_limit_are_ignored_with_a_remark() {
        let mut screencast = Screencast {
            remaining_bytes: 2,
            ..Screencast::default()
        };
        for at in [1.0, 2.0] {
            take(&mut screencast, at, "eA==");
        }
        assert_eq!(screencast.remark(), None);
        take(&mut screencast, 3.0, "eA==");
        assert_eq!(screencast.screenshots(0.0).len(), 2);
        assert!(screencast.remark().is_some());
    }
}
