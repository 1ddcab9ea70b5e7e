//! Seeds of the capture targets: recorded connections, as packets and capture files.

use spdy_frame::version::Version;
use spdy_fuzz::choices::Choices;
use spdy_inspect::direction::Direction::{ToClient, ToServer};
use spdy_testkit::{live, vectors};

use crate::Seeds;
use crate::support::file::{pcap, pcapng};
use crate::support::frames::Writer;
use crate::support::tcp::Wire;
use crate::support::tls::{connect, suites};

/// Both directions of connections: a name, the client's bytes, the server's bytes.
fn connections() -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let mut connections = Vec::new();
    for connection in live::all() {
        let [client, server] = [connection.client, connection.server]
            .map(|direction| [direction.http_head, direction.bytes].concat());
        connections.push((connection.id, client, server));
    }
    for name in ["exec_cat", "exec_fail", "ws_portforward"] {
        let [client, server] =
            ["c2s", "s2c"].map(|way| vectors::bytes(&format!("kubernetes/{name}.{way}.bin")));
        connections.push((name.to_owned(), client, server));
    }
    // A ClientHello of TLS 1.2 that offers h2 and spdy/3.1 for a.test, and a fatal alert.
    let hello = b"\x16\x03\x01\0\x53\x01\0\0\x4f\x03\x03................................\0\0\x02\xc0\x2f\x01\0\0\x24\
        \0\0\0\x0b\0\x09\0\0\x06a.test\0\x10\0\x0e\0\x0c\x02h2\x08spdy/3.1\0";
    connections.push((
        "hello".to_owned(),
        hello.to_vec(),
        b"\x15\x03\x03\0\x02\x02\x28".to_vec(),
    ));
    connections
}

/// Limits and the version, the first choices of a capture: no small limit, no stated version.
const PLAIN: [u8; 5] = [0; 5];

pub(crate) fn files(seeds: &mut Seeds) {
    for (number, (name, client, server)) in connections().into_iter().enumerate() {
        let links = [1, 101, 113, 276, 0, 12];
        let link = links[number % links.len()];
        let mut wire = Wire::new(link, number % 3 == 1);
        wire.connect();
        for (up, down) in [(true, false), (false, true)] {
            wire.send(ToServer, if up { &client } else { &[] }, 500);
            wire.send(ToClient, if down { &server } else { &[] }, 700);
        }
        wire.close();
        let choices = [&PLAIN[..], &[77, 0, 200]].concat();
        let file = if number % 2 == 0 {
            pcap(&wire.packets, link, number % 4 == 0, number % 3 == 0)
        } else {
            pcapng(&wire.packets, link as u16, Some(b"CLIENT_RANDOM 00 11\n"))
        };
        seeds.push("capture", name, Choices::join(&choices, &file));
    }
}

/// TLS connections of every cipher suite, with their secrets in the file, so that the records can be decrypted.
pub(crate) fn sealed(seeds: &mut Seeds) {
    for (version, suite) in suites() {
        let (mut pair, secrets) = connect(version, suite, Some("spdy/3.1"));
        let (mut client, mut server) = (Writer::new(Version::V31), Writer::new(Version::V31));
        pair.up(&client.open(1, true));
        pair.down(&[server.reply(1, false), server.data(1, 100, true)].concat());
        pair.wire.close();
        let secrets = secrets.0.lock().expect("no thread panicked").clone();
        let file = pcapng(&pair.wire.packets, 1, Some(secrets.as_bytes()));
        // the maximum input length of scripts/fuzz
        assert!(file.len() < 8 * 1024, "{} bytes", file.len());
        let choices = [&PLAIN[..], &[77, 0, 200]].concat();
        let name = format!("{:?}", suite.suite());
        seeds.push("capture", name, Choices::join(&choices, &file));
    }
}

pub(crate) fn streams(seeds: &mut Seeds) {
    for (name, client, server) in connections() {
        let len = client.len() as u16;
        let choices = [&PLAIN[..], &len.to_be_bytes(), &[90, 3]].concat();
        seeds.push(
            "raw_streams",
            name,
            Choices::join(&choices, &[client, server].concat()),
        );
    }
}
