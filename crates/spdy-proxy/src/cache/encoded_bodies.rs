//! Stored bodies under the content codings that clients accept. Each is encoded once, and stored while there is room.
//!
//! ```text
//!  a hit ──▶ encoded before? ── yes ──────────────────▶ that body
//!                            ── no, a short body ──────▶ encoded at once, and stored
//!                            ── no, a long body ───────▶ encoded in the background, in steps; requests read what is ready, then it is stored
//! ```
//!
//! A body that was requested again is compressed as small as possible (`cache/recompressor.rs`). So is one that its origin has coded, and an
//! image becomes a WebP image if that is enabled. From then on the result is sent.
//!
//! The cache stores one body of a response. Encoded bodies are made from it and can be made again, so they have their own memory limit. The
//! least recently used one is evicted first. A variant of a response is another body with its own encodings.
//!
//! A body in use takes room until its last reader is done, even if its response was evicted. Evicting it would free no room, so others are
//! evicted first. If only bodies in use are left, the next response is sent uncoded.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body as StreamedBody;
use spdy::runtime::SharedRuntime;
use spdy_cache::body::ByteTally;
use spdy_cache::body::{Body, BodyId};
use spdy_cache::key::Key;

use crate::body::body_memory::BodyMemory;
use crate::body::content_coding::Coding;
use crate::body::encoder::{Encoder, encode};
use crate::body::shared_body::{self, NoReaders, SharedBody, SharedBodyWriter};
use crate::cache::memory_store::body_from_pieces;
use crate::cache::recompressor::{
    RecompressedKinds, Recompression, RecompressionJob, Recompressor,
};

/// Memory of an encoded body in addition to its content, bytes.
const OVERHEAD: u64 = 256;
/// The longest body that is encoded at once, while other tasks wait, bytes: 0.8 ms as Brotli.
const MAX_INLINE_ENCODE_BYTES: u64 = 32 * 1024;
/// Bytes of a longer body that are encoded before other tasks run.
const ENCODE_CHUNK_BYTES: usize = 16 * 1024;
/// Maximum number of longer bodies that are encoded at the same time.
const MAX_CONCURRENT_ENCODINGS: usize = 64;
/// Maximum number of bodies in use that are skipped to find one to evict.
const MAX_SKIPPED: usize = 64;

/// A body under a coding.
#[derive(Debug)]
pub enum EncodedLookup {
    /// The complete body.
    Ready(Body),
    /// The body while it is being encoded.
    InProgress(StreamedBody),
    /// There is no room for it, or too many bodies are being encoded.
    Unavailable,
}

/// The result that is made from a stored body.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Representation {
    /// The same under this coding.
    Coded(Coding),
    /// The image as WebP.
    WebP,
}

/// The key of a body, and what is made from it.
type EncodedKey = (Key, Representation);

/// All encoded bodies.
#[derive(Debug)]
pub struct EncodedBodies {
    state: Mutex<EncodedBodiesState>,
    limit: u64,
    /// Counts the bodies that are being encoded.
    in_flight: Arc<BodyMemory>,
    recompressor: OnceLock<(Recompressor, RecompressedKinds)>,
}

#[derive(Debug, Default)]
struct EncodedBodiesState {
    /// Each variant has one entry.
    entries: BTreeMap<EncodedKey, Vec<EncodedEntry>>,
    /// By last use.
    used: BTreeMap<u64, EncodedKey>,
    uses: u64,
    /// Bytes of the bodies in the map, and of evicted ones that are still read.
    held_bytes: ByteTally,
    in_progress: Vec<EncodingInProgress>,
}

#[derive(Debug)]
struct EncodedEntry {
    of: BodyId,
    /// `None` until a body that its origin has coded is recompressed, and if that saves too little.
    body: Option<Body>,
    used: u64,
    /// It is recompressed, or will be.
    is_recompressed: bool,
}

/// A body that is being encoded.
#[derive(Debug)]
struct EncodingInProgress {
    name: EncodedKey,
    of: BodyId,
    recording: SharedBody,
}

impl EncodedBodiesState {
    fn find(&mut self, name: &EncodedKey, body: &Body) -> Option<&mut EncodedEntry> {
        let variants = self.entries.get_mut(name)?;
        let entry = variants.iter_mut().find(|entry| entry.of.matches(body))?;
        self.uses += 1;
        let before = std::mem::replace(&mut entry.used, self.uses);
        self.used.remove(&before);
        self.used.insert(self.uses, name.clone());
        Some(entry)
    }

    /// Stores an encoded body. Replaces those of the same body, and removes those of bodies that no longer exist.
    fn insert(
        &mut self,
        name: EncodedKey,
        of: BodyId,
        body: Option<Body>,
        is_recompressed: bool,
        limit: u64,
    ) {
        self.uses += 1;
        let used = self.uses;
        let entry = EncodedEntry {
            of,
            body,
            used,
            is_recompressed,
        };
        self.remove(&name, |other| {
            other.of.is_same_body(&entry.of) || other.of.is_gone()
        });
        let mut entry = entry;
        if let Some(body) = &entry.body {
            body.count_in(&self.held_bytes);
            let is_too_large = body.weight() + OVERHEAD > limit;
            if is_too_large && !is_recompressed {
                return;
            }
            if is_too_large {
                entry.body = None; // remembered, so that it is not made again
            }
        }
        self.used.insert(used, name.clone());
        self.entries.entry(name).or_default().push(entry);
        self.make_room(limit);
    }

    /// Bytes of all bodies that are held, with `OVERHEAD` for each entry.
    fn weight(&self) -> u64 {
        self.held_bytes.bytes() + OVERHEAD * self.used.len() as u64
    }

    /// Evicts the least recently used bodies that are not in use until the limit holds; `false` if it still does not hold.
    fn make_room(&mut self, limit: u64) -> bool {
        while self.weight() > limit {
            let mut oldest = self.used.iter().take(MAX_SKIPPED);
            let Some((&used, name)) = oldest.find(|(used, name)| !self.is_read(**used, name))
            else {
                return false;
            };
            let name = name.clone();
            self.remove(&name, |entry| entry.used == used);
        }
        true
    }

    fn is_read(&self, used: u64, name: &EncodedKey) -> bool {
        let variants = self.entries.get(name).map_or(&[][..], Vec::as_slice);
        let is_entry = |entry: &&EncodedEntry| entry.used == used;
        variants
            .iter()
            .find(is_entry)
            .is_some_and(|entry| entry.body.as_ref().is_some_and(Body::is_shared))
    }

    fn remove(&mut self, name: &EncodedKey, is_meant: impl Fn(&EncodedEntry) -> bool) {
        let Some(variants) = self.entries.get_mut(name) else {
            return;
        };
        for entry in variants.extract_if(.., |entry| is_meant(entry)) {
            self.used.remove(&entry.used);
        }
        if variants.is_empty() {
            self.entries.remove(name);
        }
    }
}

impl EncodedBodies {
    /// Without bodies, and with room for `limit` bytes. Bodies that are being encoded count in `in_flight`.
    #[must_use]
    pub fn new(limit: usize, in_flight: Arc<BodyMemory>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            limit: limit as u64,
            in_flight,
            recompressor: OnceLock::new(),
        })
    }

    /// Makes bodies of these `kinds` that are requested again as small as possible, from now on.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub(crate) fn start_recompression(&self, kinds: RecompressedKinds) -> io::Result<()> {
        let _ = self.recompressor.set((Recompressor::start()?, kinds));
        Ok(())
    }

    /// Which bodies are made smaller.
    pub(crate) fn recompressed_kinds(&self) -> RecompressedKinds {
        let kinds = self.recompressor.get().map(|(_, kinds)| *kinds);
        kinds.unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, EncodedBodiesState> {
        self.state.lock()
    }

    /// `body`, which is stored under `key`, under `coding`. A task of `runtime` encodes a long body.
    /// It is recompressed later if it `is_lasting`.
    #[must_use]
    pub fn of(
        self: &Arc<Self>,
        key: &Key,
        body: &Body,
        coding: Coding,
        is_lasting: bool,
        runtime: &SharedRuntime,
    ) -> EncodedLookup {
        let name = (key.clone(), Representation::Coded(coding));
        let mut state = self.lock();
        if let Some(entry) = state.find(&name, body)
            && let Some(encoded) = entry.body.clone()
        {
            let is_new = is_lasting && coding == Coding::Brotli && !entry.is_recompressed;
            if is_new && self.recompressed_kinds().texts {
                let text = Recompression::Text(Coding::Identity);
                entry.is_recompressed = self.recompress(key, body, text, encoded.len());
            }
            return EncodedLookup::Ready(encoded);
        }
        if !state.make_room(self.limit) {
            return EncodedLookup::Unavailable;
        }
        if body.len() > MAX_INLINE_ENCODE_BYTES {
            let reader = self.join_or_start(state, (key, coding), body, runtime);
            return reader.map_or(EncodedLookup::Unavailable, EncodedLookup::InProgress);
        }
        drop(state);
        // Not under the lock: two concurrent requests both encode it, and the later result is stored.
        let pieces: Vec<Bytes> = body.chunks().cloned().collect();
        let encoded = Body::copy_of(&encode(&pieces, coding));
        self.lock()
            .insert(name, body.id(), Some(encoded.clone()), false, self.limit);
        EncodedLookup::Ready(encoded)
    }

    /// The result of `recompression` of `body`, which is stored under `key`; `None` until that is made, and if it saves too little.
    #[must_use]
    pub(crate) fn smallest(
        self: &Arc<Self>,
        key: &Key,
        body: &Body,
        recompression: Recompression,
    ) -> Option<Body> {
        let name = (key.clone(), recompression.result());
        let mut state = self.lock();
        if let Some(entry) = state.find(&name, body) {
            return entry.body.clone();
        }
        if self.recompress(key, body, recompression, body.len()) {
            state.insert(name, body.id(), None, true, self.limit);
        }
        None
    }

    /// The same if it is already made; nothing is started.
    #[must_use]
    pub(crate) fn made_smallest(
        &self,
        key: &Key,
        body: &Body,
        recompression: Recompression,
    ) -> Option<Body> {
        let name = (key.clone(), recompression.result());
        self.lock().find(&name, body)?.body.clone()
    }

    /// Whether `body` will be made smaller. Clients get `served_len` bytes of it until then.
    fn recompress(
        self: &Arc<Self>,
        key: &Key,
        body: &Body,
        recompression: Recompression,
        served_len: u64,
    ) -> bool {
        let Some((recompressor, _)) = self.recompressor.get() else {
            return false;
        };
        recompressor.add(RecompressionJob {
            key: key.clone(),
            body: body.clone(),
            recompression,
            served_len,
            results: Arc::downgrade(self),
        })
    }

    /// Stores the result for `body`. Without one, the encoding so far stays.
    pub(super) fn insert_recompressed(
        &self,
        key: &Key,
        body: &Body,
        representation: Representation,
        small: Option<Body>,
    ) {
        let name = (key.clone(), representation);
        if small.is_some() {
            self.lock().insert(name, body.id(), small, true, self.limit);
        }
    }

    /// For a long body: reads along with the encoding in progress if its beginning is still there, or starts an encoding.
    fn join_or_start(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, EncodedBodiesState>,
        (key, coding): (&Key, Coding),
        body: &Body,
        runtime: &SharedRuntime,
    ) -> Option<StreamedBody> {
        let name = (key.clone(), Representation::Coded(coding));
        let is_same_encoding =
            |encoding: &&EncodingInProgress| encoding.name == name && encoding.of.matches(body);
        if let Some(encoding) = state.in_progress.iter().find(is_same_encoding) {
            return encoding.recording.read();
        }
        let reservation = self.in_flight.reserve(0);
        let reservation =
            reservation.filter(|_| state.in_progress.len() < MAX_CONCURRENT_ENCODINGS)?;
        let max_bytes = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let (writer, recording) = shared_body::retained(max_bytes, reservation, None);
        let reader = recording.read();
        state.in_progress.push(EncodingInProgress {
            name: name.clone(),
            of: body.id(),
            recording,
        });
        drop(state);
        let (encodings, body) = (self.clone(), body.clone());
        runtime.spawn(Box::pin(async move {
            let mut writer = writer;
            let pieces = encode_stored(&body, coding, &mut writer).await;
            let encoded = pieces
                .ok()
                .flatten()
                .map(|pieces| body_from_pieces(&pieces));
            let mut state = encodings.lock();
            let is_same_encoding =
                |encoding: &EncodingInProgress| encoding.name == name && encoding.of.matches(&body);
            state
                .in_progress
                .retain(|encoding| !is_same_encoding(encoding));
            if let Some(encoded) = encoded {
                state.insert(
                    name,
                    body.id(),
                    Some(encoded.clone()),
                    false,
                    encodings.limit,
                );
                writer.replace_with_stored(encoded);
            }
        }));
        reader
    }
}

/// Writes `body` under `coding`, and yields to other tasks after each chunk. Gives the pieces, if there is room to store them.
async fn encode_stored(
    body: &Body,
    coding: Coding,
    writer: &mut SharedBodyWriter,
) -> Result<Option<Vec<Bytes>>, NoReaders> {
    let mut encoder = Encoder::for_storage(coding);
    for chunk in body
        .chunks()
        .flat_map(|chunk| chunk.chunks(ENCODE_CHUNK_BYTES))
    {
        writer.write(encoder.write(chunk).into()).await?;
        tokio::task::yield_now().await;
    }
    writer.write(encoder.finish().into()).await?;
    Ok(writer.finish())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use spdy::runtime::{BoxFuture, Runtime};
    use spdy_clock::Instant;
    use spdy_testkit::clock::Clock;

    use super::*;
    use crate::body::decoder::Decoder;
    use crate::cache::recompressor::MAX_TEXT_BYTES;
    use crate::images::convert::ImageConversion;
    use crate::request::test_key::key;
    use crate::telemetry::counters::Counters;

    const TEXTS: RecompressedKinds = RecompressedKinds {
        texts: true,
        images: ImageConversion::Off,
    };
    const GZIPPED: Recompression = Recompression::Text(Coding::Gzip);

    fn no_encodings(limit: usize) -> Arc<EncodedBodies> {
        EncodedBodies::new(limit, BodyMemory::new(1 << 20, Counters::default()))
    }

    /// The encoding of `body`, which is made at once.
    fn encode_at_once(encodings: &Arc<EncodedBodies>, target: &str, body: &Body) -> Body {
        let runtime = SharedRuntime::new(Clock::default());
        match encodings.of(&key(target), body, Coding::Gzip, false, &runtime) {
            EncodedLookup::Ready(body) => body,
            other => panic!("expected a stored body: {other:?}"),
        }
    }

    fn is_same(one: &Body, other: &Body) -> bool {
        one.id().matches(other)
    }

    #[test]
    fn encoding_is_made_once_per_body() {
        let encodings = no_encodings(10_000);
        let body = Body::copy_of(&[b'a'; 5_000]);
        let first = encode_at_once(&encodings, "/", &body);
        assert!(is_same(
            &first,
            &encode_at_once(&encodings, "/", &body.clone())
        ));
        let other = Body::copy_of(&[b'b'; 5_000]);
        let encoded = encode_at_once(&encodings, "/", &other);
        let text = other.chunks().next().unwrap().clone();
        assert_eq!(encoded, Body::copy_of(&encode(&[text], Coding::Gzip)));
    }

    /// Otherwise variants would evict each other's encodings, and every hit would be encoded again.
    #[test]
    fn encodings_of_variants_are_kept_until_bodies_are_dropped() {
        let encodings = no_encodings(10_000);
        let (german, french) = (Body::copy_of(b"Guten Tag"), Body::copy_of(b"Bonjour"));
        let first = encode_at_once(&encodings, "/", &german);
        let second = encode_at_once(&encodings, "/", &french);
        assert!(is_same(&first, &encode_at_once(&encodings, "/", &german)));
        assert!(is_same(&second, &encode_at_once(&encodings, "/", &french)));
        drop(german);
        encode_at_once(&encodings, "/", &Body::copy_of(b"Moin"));
        let state = encodings.lock();
        assert_eq!(
            state.entries[&(key("/"), Representation::Coded(Coding::Gzip))].len(),
            2
        );
        assert_eq!(state.used.len(), 2);
    }

    /// A body, its weight when encoded, and room for two of these.
    fn room_for_two() -> (Body, u64, Arc<EncodedBodies>) {
        let encoded = Body::copy_of(&encode(&[Bytes::from_static(b"short")], Coding::Gzip));
        let weight = encoded.weight() + OVERHEAD;
        let encodings = no_encodings(usize::try_from(2 * weight).unwrap());
        (Body::copy_of(b"short"), weight, encodings)
    }

    #[test]
    fn least_recently_used_encoding_is_evicted() {
        let (body, weight, encodings) = room_for_two();
        let at = |target| encode_at_once(&encodings, target, &body).id();
        let (one, two) = (at("/1"), at("/2"));
        assert!(one.is_same_body(&at("/1")));
        at("/3");
        assert!(one.is_same_body(&at("/1")), "it was used");
        assert!(!two.is_same_body(&at("/2")), "it was evicted");
        assert!(encodings.lock().weight() <= 2 * weight);
    }

    /// Otherwise a body that is evicted while it is in use would not be counted.
    #[test]
    fn encodings_in_use_count_and_force_identity_when_full() {
        let (body, weight, encodings) = room_for_two();
        let one = encode_at_once(&encodings, "/1", &body);
        let two = encode_at_once(&encodings, "/2", &body);
        let three = encode_at_once(&encodings, "/3", &body); // the last that finds no more than the limit
        assert!(
            is_same(&one, &encode_at_once(&encodings, "/1", &body)),
            "it is read"
        );
        assert_eq!(encodings.lock().weight(), 3 * weight);
        let runtime = SharedRuntime::new(Clock::default());
        let lookup = |target| encodings.of(&key(target), &body, Coding::Gzip, false, &runtime);
        assert!(matches!(lookup("/4"), EncodedLookup::Unavailable));
        drop((two, three));
        assert!(matches!(lookup("/4"), EncodedLookup::Ready(_)));
        assert!(encodings.lock().weight() <= 2 * weight);
        assert!(is_same(&one, &encode_at_once(&encodings, "/1", &body)));
    }

    fn text_of(coded: &[u8]) -> Vec<u8> {
        let mut decoder = Decoder::new(Coding::Gzip, 1 << 20);
        let mut text = decoder.write(coded).expect("the body is valid gzip");
        text.extend(decoder.finish().expect("the body is complete"));
        text
    }

    /// Stores spawned tasks until a test runs them.
    #[derive(Clone, Default)]
    struct ByHand(Arc<Mutex<Vec<BoxFuture<()>>>>);

    impl Runtime for ByHand {
        fn now(&self) -> Instant {
            Instant::ZERO
        }

        fn sleep_until(&self, _: Instant) -> BoxFuture<()> {
            panic!("no task uses a timer")
        }

        fn spawn(&self, task: BoxFuture<()>) {
            self.0.lock().push(task);
        }
    }

    /// Otherwise all of it would be encoded in the turn of one request, and no other task would run meanwhile.
    #[test]
    fn long_body_is_encoded_once_in_background_for_all_readers() {
        let tasks = ByHand::default();
        let runtime = SharedRuntime::new(tasks.clone());
        let encodings = no_encodings(1 << 20);
        let text: Vec<u8> = (0..40 * ENCODE_CHUNK_BYTES)
            .map(|at| (at / 7 % 251) as u8)
            .collect();
        let body = Body::copy_of(&text);
        let lookup = || match encodings.of(&key("/"), &body, Coding::Gzip, false, &runtime) {
            EncodedLookup::InProgress(reader) => reader,
            other => panic!("unexpected encoded body: {other:?}"),
        };
        let first = lookup();
        let mut encoding = tasks.0.lock().pop().expect("a task encodes the body");
        assert!(
            (&mut encoding).now_or_never().is_none(),
            "the encoder yields to other tasks"
        );
        let second = lookup();
        assert!(tasks.0.lock().is_empty(), "it is made once");
        let mut steps = 1;
        while (&mut encoding).now_or_never().is_none() {
            steps += 1;
        }
        assert_eq!(steps, 40, "one for each sip");
        for reader in [first, second] {
            let coded = reader.collect_up_to(1 << 20).now_or_never();
            let coded = coded
                .expect("the body has arrived")
                .expect("the body is complete");
            assert!(text_of(&coded) == text);
        }
        let stored = encode_at_once(&encodings, "/", &body);
        let stored: Vec<u8> = stored.chunks().flatten().copied().collect();
        assert!(text_of(&stored) == text);
        assert!(encodings.lock().in_progress.is_empty());
    }

    #[tokio::test]
    async fn above_the_concurrency_limit_body_is_sent_unencoded() {
        let runtime = SharedRuntime::new(Clock::default());
        let encodings = no_encodings(1 << 20);
        let text = vec![b'x'; 3 * ENCODE_CHUNK_BYTES];
        let body = Body::copy_of(&text);
        let at = |number: usize| {
            let target = format!("/{number}");
            encodings.of(&key(&target), &body, Coding::Gzip, false, &runtime)
        };
        let lookups: Vec<EncodedLookup> = (0..MAX_CONCURRENT_ENCODINGS).map(at).collect();
        assert!(matches!(
            at(MAX_CONCURRENT_ENCODINGS),
            EncodedLookup::Unavailable
        ));
        for coded in lookups {
            let EncodedLookup::InProgress(coming) = coded else {
                panic!("it is long");
            };
            let coded = coming
                .collect_up_to(1 << 20)
                .await
                .expect("the body is complete");
            assert!(text_of(&coded) == text);
        }
        assert!(matches!(
            at(MAX_CONCURRENT_ENCODINGS),
            EncodedLookup::InProgress(_)
        ));
    }

    /// Waits for the thread.
    fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
        let began = std::time::Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(began.elapsed().as_secs() < 120, "nothing was recompressed");
            std::thread::yield_now();
        }
    }

    /// A text with few repetitions of long words.
    fn text() -> Vec<u8> {
        let word = |n: usize| {
            format!(
                "function f{}(a) {{ return a * {} }}\n",
                n * 7919 % 1009,
                n * n
            )
        };
        (0..2000).flat_map(|n| word(n).into_bytes()).collect()
    }

    #[test]
    fn requested_text_is_recompressed_and_decodes_to_the_same() {
        let encodings = no_encodings(1 << 20);
        encodings.start_recompression(TEXTS).expect("a thread");
        let runtime = SharedRuntime::new(Clock::default());
        let body = Body::copy_of(&text()[..20_000]);
        let ready = || match encodings.of(&key("/"), &body, Coding::Brotli, true, &runtime) {
            EncodedLookup::Ready(encoded) => encoded,
            other => panic!("expected a stored body: {other:?}"),
        };
        let fast = ready();
        let small = until(|| Some(ready()).filter(|encoded| encoded.len() < fast.len()));
        assert_eq!(decoded(&small, Coding::Brotli), text()[..20_000]);

        let coded = Body::copy_of(&encode(&[Bytes::from(text())], Coding::Gzip));
        assert!(
            encodings.smallest(&key("/g"), &coded, GZIPPED).is_none(),
            "not yet"
        );
        let small = until(|| encodings.smallest(&key("/g"), &coded, GZIPPED));
        assert!(small.len() < coded.len());
        assert_eq!(decoded(&small, Coding::Brotli), text());
    }

    fn decoded(body: &Body, coding: Coding) -> Vec<u8> {
        let mut decoder = Decoder::new(coding, 1 << 20);
        let mut text = Vec::new();
        for piece in body.chunks() {
            text.extend(decoder.write(piece).expect("valid"));
        }
        text.extend(decoder.finish().expect("complete"));
        text
    }

    /// Nothing is decoded past the limit, and invalid gzip is ignored.
    #[test]
    fn text_that_cannot_be_recompressed_stays_as_it_is() {
        let encodings = no_encodings(1 << 20);
        let bomb = Body::copy_of(&encode(
            &[Bytes::from(vec![0; MAX_TEXT_BYTES + 1])],
            Coding::Gzip,
        ));
        let broken = Body::copy_of(b"no gzip");
        assert!(
            encodings.smallest(&key("/b"), &broken, GZIPPED).is_none(),
            "no thread"
        );
        encodings.start_recompression(TEXTS).expect("a thread");
        let good = Body::copy_of(&encode(&[Bytes::from(text())], Coding::Gzip));
        for (target, body) in [("/a", &bomb), ("/b", &broken)] {
            assert!(encodings.smallest(&key(target), body, GZIPPED).is_none());
        }
        until(|| encodings.smallest(&key("/c"), &good, GZIPPED));
        for (target, body) in [("/a", &bomb), ("/b", &broken)] {
            assert!(encodings.smallest(&key(target), body, GZIPPED).is_none());
        }
    }
}
