//! Seeds of the protocol targets, from `vectors/spec` and `vectors/kubernetes`.

use bytes::BytesMut;
use spdy_frame::decoder::{Decoder, Limits};
use spdy_frame::frame::Frame;
use spdy_frame::version::Version;
use spdy_testkit::conformance::{self, Receiver};
use spdy_testkit::{frames as single, live, sequences, zlib};

use spdy_fuzz::choices::Choices;
use spdy_fuzz::session::peer::{self, Line};

use crate::Seeds;

/// The index of a vector's version in [`Version::ALL`], which is the value of a choice.
fn version(name: &str) -> u8 {
    match name {
        "2" => 2,
        "3" => 1,
        _ => 0,
    }
}

/// Whole sessions of one direction: the version, a name, the bytes, and whether a server receives them.
fn wires() -> Vec<(u8, String, Vec<u8>, bool)> {
    let mut wires = Vec::new();
    for sequence in sequences::all() {
        let by_client = sequence.id.contains("client");
        wires.push((
            version(&sequence.version),
            sequence.id,
            sequence.bytes,
            by_client,
        ));
    }
    for connection in live::all() {
        let at = version(&connection.version);
        wires.push((
            at,
            format!("{}-c2s", connection.id),
            connection.client.bytes,
            true,
        ));
        wires.push((
            at,
            format!("{}-s2c", connection.id),
            connection.server.bytes,
            false,
        ));
    }
    for case in conformance::all() {
        let bytes = [case.setup.0, case.input.0, case.then.0].concat();
        let at_server = case.receiver == Receiver::Server;
        wires.push((version(&case.version), case.id, bytes, at_server));
    }
    // One or two floods are enough; more of them only slow the search.
    wires.retain(|(_, _, bytes, _)| bytes.len() <= 8 * 1024);
    wires
}

pub(crate) fn frames(seeds: &mut Seeds) {
    for vector in single::all() {
        let choices = [version(&vector.version), 0, 0, 3];
        seeds.push("frame", vector.id, Choices::join(&choices, &vector.hex));
    }
    for (version, name, bytes, _) in wires() {
        seeds.push(
            "frame",
            name,
            Choices::join(&[version, 0, 0, 200, 9], &bytes),
        );
    }
}

pub(crate) fn header_blocks(seeds: &mut Seeds) {
    let framed = |blocks: Vec<&[u8]>| {
        let mut wire = Vec::new();
        for block in blocks {
            wire.extend((block.len() as u16).to_be_bytes());
            wire.extend(block);
        }
        wire
    };
    for vector in zlib::all() {
        let at = version(&vector.version);
        let blocks =
            |of: fn(&zlib::ZlibBlock) -> &[u8]| framed(vector.blocks.iter().map(of).collect());
        let compressed = blocks(|block| &block.compressed);
        let plain = blocks(|block| &block.plain);
        // version, five limits, uppercase names, compressed, after a first block, level
        let choices = [at, 0, 0, 0, 0, 0, 0, 1, 0, 6];
        seeds.push(
            "header_block",
            vector.id.clone(),
            Choices::join(&choices, &compressed),
        );
        let choices = [at, 0, 0, 0, 0, 0, 0, 0, 6];
        seeds.push(
            "header_block",
            vector.id + "-plain",
            Choices::join(&choices, &plain),
        );
    }
}

pub(crate) fn sessions(seeds: &mut Seeds) {
    for (version, name, wire, at_server) in wires() {
        let target = if at_server {
            "server_session"
        } else {
            "client_session"
        };
        // version, compression, push, greeting, unusual options, script, patience; then lengths and commands
        let raw = [
            version, 0, 0, 0, 0, 0, 0, 250, 3, 0, 1, 20, 3, 1, 200, 6, 1, 9, 2,
        ];
        seeds.push(target, name.clone(), Choices::join(&raw, &wire));
        let written = [
            version, 2, 0, 0, 128, 1, 1, 250, 2, 3, 1, 200, 0, 1, 5, 1, 3,
        ];
        seeds.push(
            target,
            name + "-script",
            Choices::join(&written, &script(version, &wire)),
        );
    }
}

/// The frames of `wire` as a script with minimal blocks.
fn script(version: u8, wire: &[u8]) -> Vec<u8> {
    let mut decoder = Decoder::new(Version::ALL[usize::from(version)], Limits::default());
    let mut wire = BytesMut::from(wire);
    let mut script = Vec::new();
    while let Ok(Some(frame)) = decoder.decode(&mut wire) {
        let mut push = |line, fin, odd, stream: u32, body: &[u8]| {
            peer::push(&mut script, line, fin, odd, stream, body);
        };
        match frame {
            Frame::Data(data) => {
                push(
                    Line::Data,
                    data.fin,
                    true,
                    data.stream_id.value(),
                    &data.payload,
                );
            }
            Frame::SynStream(syn) => {
                let body = [syn.associated_to.value() as u8, syn.priority.level() << 5];
                let id = syn.stream_id.value();
                push(Line::SynStream, syn.fin, syn.unidirectional, id, &body);
            }
            Frame::SynReply(reply) => {
                push(
                    Line::SynReply,
                    reply.fin,
                    false,
                    reply.stream_id.value(),
                    &[],
                );
            }
            Frame::Headers(headers) => {
                push(
                    Line::Headers,
                    headers.fin,
                    false,
                    headers.stream_id.value(),
                    &[],
                );
            }
            Frame::RstStream(rst) => {
                let body = [rst.status.0 as u8];
                push(Line::RstStream, false, false, rst.stream_id.value(), &body);
            }
            Frame::Settings(settings) => {
                let mut body = Vec::new();
                for entry in settings.entries {
                    body.push(entry.id.0 as u8);
                    body.extend(entry.value.to_be_bytes());
                }
                push(Line::Settings, settings.clear, false, 0, &body);
            }
            Frame::Ping(ping) => push(Line::Ping, false, false, 0, &ping.id.to_be_bytes()),
            Frame::GoAway(goaway) => {
                push(Line::GoAway, false, false, goaway.last_good.value(), &[]);
            }
            Frame::WindowUpdate(update) => {
                let (id, delta) = (update.stream_id, update.delta.to_be_bytes());
                push(Line::WindowUpdate, false, id.is_zero(), id.value(), &delta);
            }
            Frame::Noop | Frame::Skipped { .. } | Frame::CompressedData { .. } => {}
        }
    }
    script
}
