//! Both directions of a TLS connection: splits records, follows the handshake, decrypts application data.

use bytes::{Buf, Bytes, BytesMut};
use spdy_clock::Instant;

use super::cipher::{RecordDecryptor, Suite};
use super::hello::{ClientHello, ServerHello, encrypted_alpn};
use super::key_log::{KeyLog, Label};
use crate::direction::Direction;
use crate::limits::Limits;

const RECORD_HEAD: usize = 5;
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
/// 2^14 and the maximum overhead of a suite (RFC 5246 §6.2.3).
const RECORD_BYTES: usize = (1 << 14) + 2048;

/// Output of a TLS connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum TlsOutput {
    /// The negotiated protocol.
    Alpn(Instant, String),
    /// Application data.
    Plain(Instant, Direction, Bytes),
    /// Application data that is not in the capture.
    Gap(Instant, Direction, u64),
    /// The connection, or the rest of one direction, cannot be decrypted.
    Failed(Instant, String),
}

/// A TLS connection.
#[derive(Debug)]
pub(crate) struct Tls {
    limits: Limits,
    client_hello: Option<ClientHello>,
    retried: bool,
    server_hello: Option<(ServerHello, Suite)>,
    halves: [Half; 2],
    failed: bool,
}

#[derive(Debug, Default)]
struct Half {
    input: BytesMut,
    /// Remaining bytes of a record of which a part is missing.
    skip: usize,
    /// Handshake bytes, which are split into messages.
    handshake: BytesMut,
    decryptor: Option<RecordDecryptor>,
    /// After Finished in 1.3, after ChangeCipherSpec in 1.2.
    established: bool,
    /// A record of 1.3 was decrypted: early data has ended.
    opened: bool,
    /// Nothing more can be decrypted.
    lost: bool,
}

impl Tls {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            client_hello: None,
            retried: false,
            server_hello: None,
            halves: Default::default(),
            failed: false,
        }
    }

    /// Server name and protocols of the ClientHello.
    pub(crate) fn offered(&self) -> (Option<&str>, &[String]) {
        self.client_hello.as_ref().map_or((None, &[]), |hello| {
            (hello.server_name.as_deref(), hello.alpn.as_slice())
        })
    }

    pub(crate) fn push(
        &mut self,
        at: Instant,
        direction: Direction,
        bytes: &[u8],
        keys: &KeyLog,
        out: &mut Vec<TlsOutput>,
    ) {
        let half = &mut self.halves[direction.index()];
        if self.failed || half.lost {
            return;
        }
        let skipped = half.skip.min(bytes.len());
        half.skip -= skipped;
        half.input.extend_from_slice(&bytes[skipped..]);
        // Buffered bytes of one direction may have waited for the other.
        for direction in [direction, direction.back(), direction] {
            while !self.failed && self.record(at, direction, keys, out) {}
        }
        if self
            .halves
            .iter()
            .any(|half| half.input.len() > self.limits.waiting_bytes)
        {
            self.fail(
                at,
                "TLS without the start of its handshake in the capture",
                out,
            );
        }
    }

    /// Handles missing bytes.
    pub(crate) fn gap(
        &mut self,
        at: Instant,
        direction: Direction,
        len: u64,
        out: &mut Vec<TlsOutput>,
    ) {
        let half = &mut self.halves[direction.index()];
        if self.failed || half.lost {
            return;
        }
        let rest = if half.skip > 0 {
            half.skip
        } else {
            record_len(&half.input).map_or(0, |total| total.saturating_sub(half.input.len()))
        };
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        // Within a record the boundary of the next record and its number stay known.
        match &mut half.decryptor {
            Some(opener) if half.established && len <= rest => {
                if half.skip == 0 {
                    let plain = opener.plain_len(half.input.len() + rest - RECORD_HEAD);
                    opener.skip_record();
                    half.input.clear();
                    out.push(TlsOutput::Gap(at, direction, plain as u64));
                }
                half.skip = rest - len;
            }
            _ => {
                half.lost = true;
                half.input = BytesMut::new();
                let (sender, during) = (
                    direction.sender(),
                    if half.established {
                        ""
                    } else {
                        " in its handshake"
                    },
                );
                out.push(TlsOutput::Failed(
                    at,
                    format!("{len} bytes of TLS from the {sender} are not in the capture{during}: the rest cannot be decrypted"),
                ));
            }
        }
    }

    fn fail(&mut self, at: Instant, reason: impl Into<String>, out: &mut Vec<TlsOutput>) {
        self.failed = true;
        for half in &mut self.halves {
            half.input = BytesMut::new();
            half.handshake = BytesMut::new();
        }
        out.push(TlsOutput::Failed(at, reason.into()));
    }

    /// Handles one record; `false` if there is none, or if it must wait for the other direction.
    fn record(
        &mut self,
        at: Instant,
        direction: Direction,
        keys: &KeyLog,
        out: &mut Vec<TlsOutput>,
    ) -> bool {
        let half = &mut self.halves[direction.index()];
        let Some(total) = record_len(&half.input) else {
            return false;
        };
        let kind = half.input[0];
        if !(CHANGE_CIPHER_SPEC..=APPLICATION_DATA + 1).contains(&kind)
            || half.input[1] != 3
            || total > RECORD_HEAD + RECORD_BYTES
        {
            let reason = format!(
                "invalid TLS record from the {}: it starts with {:02x?}",
                direction.sender(),
                &half.input[..RECORD_HEAD]
            );
            self.fail(at, reason, out);
            return false;
        }
        let waits = match direction {
            Direction::ToClient => self.client_hello.is_none(),
            Direction::ToServer => {
                self.client_hello.is_some()
                    && self.server_hello.is_none()
                    && (!self.retried || kind == APPLICATION_DATA)
            }
        };
        if waits || half.input.len() < total {
            return false;
        }
        let head = *half.input.first_chunk().expect("the record has a head");
        half.input.advance(RECORD_HEAD);
        let body = half.input.split_to(total - RECORD_HEAD).freeze();
        let is_13 = self
            .server_hello
            .as_ref()
            .is_some_and(|(hello, _)| hello.is_13);
        // TLS 1.3 sends ChangeCipherSpec unencrypted, for middleboxes only; an alert may also be unencrypted.
        let sealed = half.decryptor.is_some() && (!is_13 || kind == APPLICATION_DATA);
        if !sealed {
            match kind {
                HANDSHAKE => self.handshake(at, direction, &body, keys, out),
                CHANGE_CIPHER_SPEC if !is_13 => self.change_12(at, direction, keys, out),
                APPLICATION_DATA => {
                    self.fail(at, "application data before the end of the handshake", out);
                }
                _ => {}
            }
            return true;
        }
        let Some(opener) = &mut half.decryptor else {
            return true;
        };
        let Some((kind, plain)) = opener.open(head, &body) else {
            let early = direction == Direction::ToServer
                && !half.opened
                && self
                    .client_hello
                    .as_ref()
                    .is_some_and(|hello| hello.early_data);
            if !early {
                let sender = direction.sender();
                let reason = format!(
                    "cannot decrypt a TLS record from the {sender} with the key log's secret"
                );
                self.fail(at, reason, out);
            }
            return true;
        };
        half.opened = true;
        match kind {
            APPLICATION_DATA if !plain.is_empty() => {
                out.push(TlsOutput::Plain(at, direction, plain.into()));
            }
            HANDSHAKE if is_13 => self.handshake(at, direction, &plain, keys, out),
            ALERT | HANDSHAKE | APPLICATION_DATA => {}
            other => {
                let reason = format!(
                    "unexpected TLS record of type {other} from the {}",
                    direction.sender()
                );
                self.fail(at, reason, out);
            }
        }
        true
    }

    /// Handles handshake bytes, and every message that they complete.
    fn handshake(
        &mut self,
        at: Instant,
        direction: Direction,
        bytes: &[u8],
        keys: &KeyLog,
        out: &mut Vec<TlsOutput>,
    ) {
        self.halves[direction.index()]
            .handshake
            .extend_from_slice(bytes);
        while !self.failed {
            let half = &mut self.halves[direction.index()];
            let Some(&[kind, a, b, c]) = half.handshake.first_chunk() else {
                return;
            };
            let len = u32::from_be_bytes([0, a, b, c]) as usize;
            if len > self.limits.handshake_message_bytes {
                let limit = self.limits.handshake_message_bytes;
                let reason = format!("TLS handshake message has {len} bytes, limit {limit}");
                return self.fail(at, reason, out);
            }
            if half.handshake.len() < 4 + len {
                return;
            }
            half.handshake.advance(4);
            let body = half.handshake.split_to(len);
            self.message(at, direction, kind, &body, keys, out);
        }
    }

    fn message(
        &mut self,
        at: Instant,
        direction: Direction,
        kind: u8,
        body: &[u8],
        keys: &KeyLog,
        out: &mut Vec<TlsOutput>,
    ) {
        const CLIENT_HELLO: u8 = 1;
        const SERVER_HELLO: u8 = 2;
        const ENCRYPTED_EXTENSIONS: u8 = 8;
        const FINISHED: u8 = 20;
        const KEY_UPDATE: u8 = 24;
        let which = direction.index();
        match (direction, kind) {
            (Direction::ToServer, CLIENT_HELLO) => match ClientHello::decode(body) {
                Some(hello) => self.client_hello = Some(hello),
                None => self.fail(at, "truncated ClientHello", out),
            },
            (Direction::ToClient, SERVER_HELLO) => match ServerHello::decode(body) {
                Some(hello) if hello.is_retry() => self.retried = true,
                Some(hello) => self.handle_server_hello(at, hello, keys, out),
                None => self.fail(at, "truncated ServerHello", out),
            },
            (Direction::ToClient, ENCRYPTED_EXTENSIONS) => {
                out.extend(encrypted_alpn(body).map(|name| TlsOutput::Alpn(at, name)));
            }
            (_, FINISHED) => {
                let label = match direction {
                    Direction::ToServer => Label::ClientTraffic,
                    Direction::ToClient => Label::ServerTraffic,
                };
                self.halves[which].decryptor = self.decryptor_13(at, label, keys, out);
                self.halves[which].established = true;
            }
            (_, KEY_UPDATE) => {
                let updated = self.halves[which]
                    .decryptor
                    .as_ref()
                    .and_then(RecordDecryptor::next_keys);
                self.halves[which].decryptor = updated;
            }
            _ => {}
        }
    }

    fn handle_server_hello(
        &mut self,
        at: Instant,
        hello: ServerHello,
        keys: &KeyLog,
        out: &mut Vec<TlsOutput>,
    ) {
        let Some(suite) = Suite::of(hello.suite) else {
            let reason = format!(
                "unsupported cipher suite {:#06x}, expected AES-GCM or ChaCha20-Poly1305 of TLS 1.2 or 1.3",
                hello.suite
            );
            return self.fail(at, reason, out);
        };
        let is_13 = hello.is_13;
        let alpn = hello.alpn.clone();
        out.extend(alpn.map(|name| TlsOutput::Alpn(at, name)));
        self.server_hello = Some((hello, suite));
        if is_13 {
            let client = self.decryptor_13(at, Label::ClientHandshake, keys, out);
            if client.is_some() {
                let server = self.decryptor_13(at, Label::ServerHandshake, keys, out);
                self.halves[0].decryptor = client;
                self.halves[1].decryptor = server;
            }
        }
    }

    /// The decryptor for TLS 1.3's secret of `label`; fails the connection if there is none.
    fn decryptor_13(
        &mut self,
        at: Instant,
        label: Label,
        keys: &KeyLog,
        out: &mut Vec<TlsOutput>,
    ) -> Option<RecordDecryptor> {
        let opener = self.server_hello.as_ref().zip(self.client_hello.as_ref());
        let opener = opener.and_then(|((_, suite), hello)| {
            RecordDecryptor::of_13(*suite, keys.secret(&hello.random, label)?)
        });
        if opener.is_none() {
            self.fail(at, NO_SECRET, out);
        }
        opener
    }

    fn change_12(
        &mut self,
        at: Instant,
        direction: Direction,
        keys: &KeyLog,
        out: &mut Vec<TlsOutput>,
    ) {
        let (Some(client), Some((server, suite))) = (&self.client_hello, &self.server_hello) else {
            // The server requested a retry (HelloRetryRequest): TLS 1.3.
            return;
        };
        let opener = keys
            .secret(&client.random, Label::Master)
            .and_then(|master| {
                RecordDecryptor::of_12(*suite, master, &client.random, &server.random, direction)
            });
        match opener {
            Some(opener) => {
                let half = &mut self.halves[direction.index()];
                half.decryptor = Some(opener);
                half.established = true;
            }
            None => self.fail(at, NO_SECRET, out),
        }
    }
}

const NO_SECRET: &str = "the key log has no secret of this TLS connection";

/// Bytes of the record at the front, including its head, if the head is complete.
fn record_len(input: &[u8]) -> Option<usize> {
    let head: &[u8; RECORD_HEAD] = input.first_chunk()?;
    Some(RECORD_HEAD + usize::from(u16::from_be_bytes([head[3], head[4]])))
}
