//! Writes capture files: pcap in its four forms, and pcapng.

/// Bytes of a packet, with its time.
pub(crate) type Packet = (u64, Vec<u8>);

/// pcap of `packets` on a link of type `link`.
pub(crate) fn pcap(packets: &[Packet], link: u32, big_endian: bool, nanos: bool) -> Vec<u8> {
    let u32 = |value: u32| match big_endian {
        true => value.to_be_bytes(),
        false => value.to_le_bytes(),
    };
    let magic = if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = Vec::new();
    file.extend(u32(magic));
    file.extend(match big_endian {
        true => [0, 2, 0, 4],
        false => [2, 0, 4, 0],
    });
    for word in [0, 0, 65_535, link] {
        file.extend(u32(word));
    }
    for (at, bytes) in packets {
        let fraction = (at % 1_000_000_000) as u32 / if nanos { 1 } else { 1000 };
        for word in [
            (at / 1_000_000_000) as u32,
            fraction,
            bytes.len() as u32,
            bytes.len() as u32,
        ] {
            file.extend(u32(word));
        }
        file.extend(bytes);
    }
    file
}

/// A block of pcapng, little-endian.
pub(crate) fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let len = (12 + padded) as u32;
    let mut block = Vec::new();
    block.extend(kind.to_le_bytes());
    block.extend(len.to_le_bytes());
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(len.to_le_bytes());
    block
}

/// pcapng with nanosecond stamps, and TLS secrets if there are any.
pub(crate) fn pcapng(packets: &[Packet], link: u16, secrets: Option<&[u8]>) -> Vec<u8> {
    let mut section = Vec::new();
    section.extend(0x1a2b_3c4d_u32.to_le_bytes());
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    let mut file = block(0x0a0d_0d0a, &section);
    let mut interface = Vec::new();
    interface.extend(link.to_le_bytes());
    interface.extend([0; 6]);
    interface.extend([9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(block(1, &interface));
    if let Some(secrets) = secrets {
        let mut body = Vec::new();
        body.extend(0x544c_534b_u32.to_le_bytes());
        body.extend((secrets.len() as u32).to_le_bytes());
        body.extend(secrets);
        file.extend(block(10, &body));
    }
    for (at, bytes) in packets {
        let mut body = Vec::new();
        for word in [
            0,
            (at >> 32) as u32,
            *at as u32,
            bytes.len() as u32,
            bytes.len() as u32,
        ] {
            body.extend(word.to_le_bytes());
        }
        body.extend(bytes);
        file.extend(block(6, &body));
    }
    file
}
