//! Checks that received bodies equal the replica's, to the last byte.

use spdy_page::head;
use spdy_page::replica::Exchange;

/// The responses that a replica has for one request. Each piece of body removes those that do not match it.
pub(crate) struct BodyCheck<'a> {
    /// Status and body of each that is still possible.
    possible: Vec<(Option<u16>, &'a [u8])>,
    arrived: usize,
    /// Length of the body of the exchange itself, for the message.
    expected_bytes: usize,
    /// Status from which any body is accepted.
    any_from: Option<u16>,
}

impl<'a> BodyCheck<'a> {
    /// Expects a response to `exchange`: `answers` are those of all exchanges with the same request, including `exchange`, with their
    /// statuses.
    pub(crate) fn of(
        answers: impl Iterator<Item = (&'a Exchange, Option<u16>)>,
        exchange: &Exchange,
    ) -> Self {
        let answer = |(exchange, status): (&'a Exchange, Option<u16>)| {
            let has_body = head::has_body(&exchange.method, status.unwrap_or(200));
            (status, if has_body { &exchange.body[..] } else { &[] })
        };
        let possible = answers.map(answer).collect();
        Self {
            possible,
            arrived: 0,
            expected_bytes: exchange.body.len(),
            any_from: None,
        }
    }

    /// As [`of`](Self::of) behind an accelerator: `answers` with their texts; the text of the exchange itself has `expected_bytes`.
    /// For a response that failed at the origin, the accelerator may send the status alone, or its own error page.
    pub(crate) fn texts(
        answers: impl Iterator<Item = (&'a Exchange, &'a [u8])>,
        expected_bytes: usize,
    ) -> Self {
        let answer = |(exchange, text): (&'a Exchange, &'a [u8])| {
            let status = exchange.status();
            let has_body = head::has_body(&exchange.method, status.unwrap_or(200));
            (status, if has_body { text } else { &[] })
        };
        let possible: Vec<(Option<u16>, &[u8])> = answers.map(answer).collect();
        let has_failed = possible.iter().any(|(status, _)| *status >= Some(400));
        Self {
            possible,
            arrived: 0,
            expected_bytes,
            any_from: has_failed.then_some(400),
        }
    }

    /// Accepts any body.
    pub(crate) fn anything() -> Self {
        Self {
            possible: Vec::new(),
            arrived: 0,
            expected_bytes: 0,
            any_from: Some(0),
        }
    }

    /// Compares the next bytes of the body. Returns the number of bytes so far.
    pub(crate) fn compare(&mut self, piece: &[u8]) -> u64 {
        let at = self.arrived;
        self.possible
            .retain(|(_, body)| body.get(at..).is_some_and(|rest| rest.starts_with(piece)));
        self.arrived += piece.len();
        self.arrived as u64
    }

    /// Ends the body; `status` is the status of the response.
    pub(crate) fn finish(&self, status: u16) -> Result<(), String> {
        if self.any_from.is_some_and(|from| status >= from) {
            return Ok(());
        }
        let (arrived, expected) = (self.arrived, self.expected_bytes);
        let mut whole = self
            .possible
            .iter()
            .filter(|(_, body)| body.len() == arrived)
            .peekable();
        if whole.peek().is_none() {
            return Err(format!(
                "body has {arrived} bytes, expected the replica's {expected}"
            ));
        }
        if !whole.any(|(recorded, _)| recorded.is_none_or(|recorded| recorded == status)) {
            return Err(format!("status {status} differs from the replica's"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(
        possible: &[(u16, &'static str)],
        pieces: &[&str],
        status: u16,
    ) -> Result<(), String> {
        let possible = possible
            .iter()
            .map(|(status, body)| (Some(*status), body.as_bytes()))
            .collect();
        let mut expected = BodyCheck {
            possible,
            arrived: 0,
            expected_bytes: 3,
            any_from: None,
        };
        pieces
            .iter()
            .for_each(|piece| _ = expected.compare(piece.as_bytes()));
        expected.finish(status)
    }

    #[test]
    fn a_body_must_be_one_of_the_replicas_to_the_last_byte() {
        let one = [(200, "abc")];
        assert_eq!(expected(&one, &["a", "bc"], 200), Ok(()));
        for wrong in [&["ab"][..], &["abd"], &["abc", "d"], &[]] {
            assert!(expected(&one, wrong, 200).is_err(), "{wrong:?}");
        }
        assert_eq!(
            expected(&one, &["abc"], 404),
            Err("status 404 differs from the replica's".to_owned())
        );
        let two = [(200, "abc"), (404, "ab")];
        assert_eq!(expected(&two, &["ab"], 404), Ok(()));
        assert_eq!(expected(&two, &["a", "b", "c"], 200), Ok(()));
        assert!(
            expected(&two, &["ab"], 200).is_err(),
            "the body of one with the status of the other"
        );
    }
}
