//! Laws for any input.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use spdy_frame::compress::{Compression, DeflateOptions, Deflater, Inflater};
use spdy_frame::frame::{
    Data, Frame, GoAway, Headers, Ping, RstStream, Setting, SettingId, Settings, SynReply,
    SynStream, WindowUpdate,
};
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::priority::Priority;
use spdy_frame::public_headers::is_public;
use spdy_frame::secrets::Secrets;
use spdy_frame::status::{GoAwayStatus, RstStatus};
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;

use crate::support;

fn any_version() -> impl Strategy<Value = Version> {
    prop::sample::select(Version::ALL.to_vec())
}

fn any_stream() -> impl Strategy<Value = StreamId> {
    (1..=StreamId::MAX.value()).prop_map(StreamId::new)
}

fn any_bytes(most: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..=most).prop_map(Bytes::from)
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let entry = (any::<u8>(), any::<u32>());
    (
        any::<bool>(),
        prop::collection::btree_map(0..0x0100_0000_u32, entry, 0..20),
    )
        .prop_map(|(clear, entries)| {
            let entry = |(id, (flags, value))| Setting {
                id: SettingId(id),
                flags,
                value,
            };
            Settings {
                clear,
                entries: entries.into_iter().map(entry).collect(),
                ignored: 0,
            }
        })
}

/// Any frame that `version` can encode and that is decoded unchanged.
fn any_frame(version: Version) -> BoxedStrategy<Frame> {
    let levels = if version == Version::V2 {
        vec![0, 2, 4, 6]
    } else {
        (0..8).collect()
    };
    let statuses = if version == Version::V2 {
        0..=7
    } else {
        0..=u32::MAX
    };
    let block = || any_bytes(300);
    let data =
        (any_stream(), any_bytes(300), any::<bool>()).prop_map(|(stream_id, payload, fin)| {
            Frame::Data(Data {
                stream_id,
                payload,
                fin,
            })
        });
    let syn = (
        any_stream(),
        0..=StreamId::MAX.value(),
        prop::sample::select(levels),
        any::<(bool, bool)>(),
        block(),
    );
    let syn = syn.prop_map(
        |(stream_id, associated_to, level, (fin, unidirectional), block)| {
            Frame::SynStream(SynStream {
                stream_id,
                associated_to: StreamId::new(associated_to),
                priority: Priority::new(level),
                fin,
                unidirectional,
                block,
            })
        },
    );
    let reply = (any_stream(), any::<bool>(), block()).prop_map(|(stream_id, fin, block)| {
        Frame::SynReply(SynReply {
            stream_id,
            fin,
            block,
        })
    });
    let headers = (any_stream(), any::<bool>(), block()).prop_map(|(stream_id, fin, block)| {
        Frame::Headers(Headers {
            stream_id,
            fin,
            block,
        })
    });
    let rst = (any_stream(), statuses).prop_map(|(stream_id, status)| {
        Frame::RstStream(RstStream {
            stream_id,
            status: RstStatus(status),
        })
    });
    let goaway = (0..=StreamId::MAX.value(), any::<u32>()).prop_map(move |(last_good, status)| {
        // 11 is read as 2.
        let status = GoAwayStatus(if status == 11 { 2 } else { status });
        let status = (version != Version::V2).then_some(status);
        Frame::GoAway(GoAway {
            last_good: StreamId::new(last_good),
            status,
        })
    });
    let ping = any::<u32>().prop_map(|id| Frame::Ping(Ping { id }));
    let common = prop_oneof![
        3 => data,
        2 => syn,
        1 => reply,
        1 => headers,
        1 => rst,
        1 => goaway,
        1 => ping,
        1 => any_settings().prop_map(Frame::Settings),
    ];
    if version == Version::V2 {
        return prop_oneof![9 => common, 1 => Just(Frame::Noop)].boxed();
    }
    let update = (0..=StreamId::MAX.value(), 0..=WindowUpdate::MAX_DELTA);
    let update = update.prop_map(|(stream_id, delta)| {
        Frame::WindowUpdate(WindowUpdate {
            stream_id: StreamId::new(stream_id),
            delta,
        })
    });
    prop_oneof![9 => common, 1 => update].boxed()
}

fn any_frames() -> impl Strategy<Value = (Version, Vec<Frame>)> {
    any_version().prop_flat_map(|version| {
        (
            Just(version),
            prop::collection::vec(any_frame(version), 0..8),
        )
    })
}

/// Names and values as a block may hold them, some of them private, many of them alike.
fn any_block() -> impl Strategy<Value = HeaderBlock> {
    let name = prop_oneof![
        3 => prop::sample::select(vec![
            "cookie", "set-cookie", "authorization", "proxy-authorization", "accept",
            "user-agent", "referer", "status", "content-length",
        ]).prop_map(str::to_owned),
        1 => "[a-z0-9!_~-]{1,20}",
    ];
    let component = prop_oneof![
        2 => prop::collection::vec(any::<u8>(), 1..60),
        2 => prop::collection::vec(b'a'..=b'c', 1..120),
        1 => (1_usize..400).prop_map(|len| vec![b'x'; len]),
        1 => Just(b"text/html,application/xhtml+xml".to_vec()),
    ];
    let component = component.prop_map(|mut bytes| {
        // NUL separates components, line ends are refused.
        bytes
            .iter_mut()
            .filter(|b| matches!(**b, 0 | b'\r' | b'\n'))
            .for_each(|b| *b = b' ');
        bytes
    });
    prop::collection::vec((name, component), 0..12).prop_map(|pairs| pairs.into_iter().collect())
}

proptest! {
    /// Encoded frames decode to the same frames, and leave no bytes.
    #[test]
    fn round_trip((version, frames) in any_frames()) {
        let wire = support::encode(version, &frames);
        let back = support::decode_pieces(version, [&wire[..]]);
        prop_assert_eq!(back, Ok(support::join_data(frames)));
    }

    /// Where the bytes are cut changes nothing.
    #[test]
    fn any_split_gives_the_same_frames(
        (version, frames) in any_frames(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let wire = support::encode(version, &frames);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).collect();
        cuts.sort_unstable();
        let ends = cuts.iter().copied().chain([wire.len()]);
        let pieces = cuts.iter().copied().scan(0, |from, to| Some((std::mem::replace(from, to), to)));
        let last = (cuts.last().copied().unwrap_or(0), wire.len());
        let pieces: Vec<&[u8]> = pieces.chain([last]).map(|(from, to)| &wire[from..to]).collect();
        prop_assert_eq!(pieces.len(), ends.count());
        let back = support::decode_pieces(version, pieces);
        prop_assert_eq!(back, Ok(support::join_data(frames)));
    }

    /// Arbitrary bytes are frames or an error, the same ones however they are cut.
    #[test]
    fn arbitrary_bytes_never_panic(
        version in any_version(),
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        control in any::<bool>(),
        piece in 1_usize..20,
    ) {
        if control && bytes.len() >= 8 {
            // A head that is nearly right gets further.
            bytes[..2].copy_from_slice(&[0x80, version.wire() as u8]);
            bytes[2] = 0;
            bytes[3] %= 12;
            bytes[5] = 0;
            bytes[6] = 0;
            bytes[7] %= 64;
        }
        let whole = support::decode_pieces(version, [&bytes[..]]);
        prop_assert_eq!(support::decode_in_pieces(version, &bytes, piece), whole);
    }

    /// Arbitrary bytes are a header block or an error; a block that is taken is written as it came.
    #[test]
    fn arbitrary_plain_blocks_never_panic(
        version in any_version(),
        plain in prop::collection::vec(prop_oneof![Just(0_u8), 0_u8..4, Just(b'a'), any::<u8>()], 0..80),
    ) {
        if let Ok(block) = HeaderBlock::decode(version, &plain, &BlockLimits::default()) {
            let empty = block.iter().any(|(_, value)| value.is_empty());
            if version != Version::V2 || !empty {
                let mut back = BytesMut::new();
                block.encode(version, &mut back);
                prop_assert_eq!(&back[..], &plain[..]);
            }
            prop_assert_eq!(block.check(version, &BlockLimits::default()), Ok(()));
        }
    }

    /// Arbitrary bytes after a good head inflate or do not, and never past the limit.
    #[test]
    fn arbitrary_compressed_blocks_never_panic(
        version in any_version(),
        blocks in prop::collection::vec(any_bytes(80), 1..4),
    ) {
        let mut first = BytesMut::new();
        Deflater::new(version, Compression::CrimeSafe).deflate(&HeaderBlock::new(), &mut first);
        let mut limits = BlockLimits::default();
        limits.inflated_bytes = 5000;
        let mut inflater = Inflater::new(version, limits);
        prop_assert!(inflater.inflate(&first.freeze()).is_ok());
        for block in blocks {
            let Ok(inflated) = inflater.inflate(&block) else { break };
            prop_assert!(inflated.plain_bytes <= 5000);
        }
    }

    /// Compressing and inflating is nothing, for any headers in any order, in every way.
    #[test]
    fn deflate_then_inflate_is_identity(
        version in any_version(),
        compression in prop::sample::select(vec![
            Compression::CrimeSafe, Compression::CrimeSafe, Compression::CrimeSafe,
            Compression::Zlib(0), Compression::Zlib(6),
        ]),
        blocks in prop::collection::vec(any_block(), 1..12),
    ) {
        let mut deflater = Deflater::new(version, compression);
        let mut inflater = Inflater::new(version, BlockLimits::default());
        for block in blocks {
            let mut wire = BytesMut::new();
            let plain_bytes = deflater.deflate(&block, &mut wire);
            prop_assert_eq!(plain_bytes, block.plain_len(version));
            let inflated = inflater.inflate(&wire.freeze()).expect("decode the encoded bytes");
            prop_assert_eq!(inflated.plain_bytes, plain_bytes);
            prop_assert_eq!(inflated.headers, Ok(block));
        }
    }

    /// A reader gets the same whatever is private, and however far repetitions reach.
    #[test]
    fn secrets_and_windows_do_not_change_the_headers(
        version in any_version(),
        window_bits in 11..=15_u8,
        secrets in any_secrets(),
        blocks in prop::collection::vec((any_block(), any::<bool>()), 1..40),
    ) {
        let mut options = DeflateOptions::default();
        options.window_bits = window_bits;
        options.secrets = secrets;
        let mut deflater = Deflater::new(version, options);
        let mut inflater = Inflater::new(version, BlockLimits::default());
        for (mut block, marked) in blocks {
            if marked {
                block.mark_secret("accept");
            }
            let mut wire = BytesMut::new();
            deflater.deflate(&block, &mut wire);
            let inflated = inflater.inflate(&wire.freeze()).expect("decode the encoded bytes");
            prop_assert_eq!(inflated.headers, Ok(block));
        }
    }

    /// The lengths that an eavesdropper sees depend on the public bytes, on how long the private values are, and on which
    /// of the long repeatable ones are equal. Here two sessions differ in every private value, and the public text is
    /// written by an attacker that knows all of the first session's.
    #[test]
    fn lengths_reveal_no_secrets(
        version in any_version(),
        window_bits in 11..=15_u8,
        whole_matches in any::<bool>(),
        plans in prop::collection::vec(any_plan(), 1..30),
        seeds in any::<[u64; 2]>(),
    ) {
        let lengths = |seed: u64| {
            let secrets = Secrets::default().whole_matches(whole_matches);
            let mut options = DeflateOptions::default();
            options.window_bits = window_bits;
            options.secrets = secrets;
            let mut deflater = Deflater::new(version, options);
            let mut seen = Vec::new();
            for plan in &plans {
                let mut wire = BytesMut::new();
                deflater.deflate(&plan.block(version, seed, seeds[0]), &mut wire);
                seen.push(wire.len());
            }
            seen
        };
        prop_assert_eq!(lengths(seeds[0]), lengths(seeds[1]));
    }
}

fn any_secrets() -> impl Strategy<Value = Secrets> {
    let secrets = |none| {
        if none {
            Secrets::none()
        } else {
            Secrets::default()
        }
    };
    (any::<bool>(), any::<bool>()).prop_map(move |(none, whole)| secrets(none).whole_matches(whole))
}

/// A private value by number: its letters follow from the number and the session's seed, few of them, so that they
/// repeat.
fn secret(number: usize, seed: u64) -> String {
    const LENGTHS: [usize; 8] = [1, 7, 15, 16, 17, 40, 300, 700];
    let mut state = seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut letter = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'a' + (state >> 59) as u8 % 4)
    };
    let len = LENGTHS[number % LENGTHS.len()];
    (0..len).map(|_| letter()).collect()
}

/// A block whose private values are numbers.
#[derive(Clone, Debug)]
struct Plan {
    host: usize,
    cookie: Vec<usize>,
    /// Name, number.
    others: Vec<(String, usize)>,
    /// What the attacker chose: pieces of the first session's private values, from where on and how long.
    guesses: Vec<(usize, usize, usize)>,
}

/// A name whose values are private in every version.
fn any_private_name() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "set-cookie",
        "authorization",
        "proxy-authorization",
        "referer",
        ":path",
        "url",
        "location",
        "etag",
        "if-none-match",
        "x-csrf-token",
        "x-api-key",
    ]);
    let any = "[a-z][a-z0-9!_~-]{0,20}".prop_filter("a public name", |name: &String| {
        let is_public = |version: &Version| is_public(*version, name.as_bytes());
        name != "cookie" && !Version::ALL.iter().any(is_public)
    });
    prop_oneof![2 => known.prop_map(str::to_owned), 1 => any]
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let number = 0..24_usize;
    (
        0..3_usize,
        prop::collection::vec(number.clone(), 0..5),
        prop::collection::vec((any_private_name(), number.clone()), 0..4),
        prop::collection::vec((number, 0..20_usize, 0..60_usize), 0..4),
    )
        .prop_map(|(host, cookie, others, guesses)| Plan {
            host,
            cookie,
            others,
            guesses,
        })
}

impl Plan {
    fn cookie(&self, seed: u64) -> String {
        let crumb = |number: &usize| format!("c{number}={}", secret(*number, seed));
        let crumbs: Vec<String> = self.cookie.iter().map(crumb).collect();
        crumbs.join("; ")
    }

    fn block(&self, version: Version, seed: u64, attacked: u64) -> HeaderBlock {
        let guess = |(number, from, len): &(usize, usize, usize)| {
            let text = format!("; c{number}={}; ", secret(*number, attacked));
            text.chars().skip(*from).take(*len).collect::<String>()
        };
        let guesses: Vec<String> = self.guesses.iter().map(guess).collect();
        // And the very bytes of the plain block around the cookie, as far as the attacker likes.
        let cookie = self.cookie(attacked);
        let len = cookie.len() as u32;
        let len = match version {
            Version::V2 => len.to_be_bytes()[2..].to_vec(),
            Version::V3 | Version::V31 => len.to_be_bytes().to_vec(),
        };
        let mut around = [b"cookie", &len[..], cookie.as_bytes()].concat();
        around.truncate(self.guesses.iter().map(|(_, _, len)| len).sum());

        let host = match version {
            Version::V2 => "host",
            Version::V3 | Version::V31 => ":host",
        };
        let mut block = HeaderBlock::new();
        block.push(host, format!("{}.example", self.host));
        block.push("accept", guesses.concat());
        block.push("accept-language", around.clone());
        block.push("x-chosen", guesses.concat());
        if !self.cookie.is_empty() {
            block.push("cookie", self.cookie(seed));
        }
        for (name, number) in &self.others {
            block.push(name, secret(*number, seed));
        }
        // Private by its mark alone.
        block.push("server", secret(5, seed));
        block.push("user-agent", around);
        block.push("x-guesses", guesses.join("; "));
        block.mark_secret("server");
        block
    }
}
