//! The smallest images and font that browsers accept.

use std::io::Write;

/// A PNG of `width` by `height`, in one colour.
pub(crate) fn png(width: u32, height: u32, colour: [u8; 3]) -> Vec<u8> {
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |kind: &[u8; 4], data: &[u8]| {
        let kind_and_data = [kind, data].concat();
        let mut sum = flate2::Crc::new();
        sum.update(&kind_and_data);
        out.extend((data.len() as u32).to_be_bytes());
        out.extend(kind_and_data);
        out.extend(sum.sum().to_be_bytes());
    };
    let mut head = [width.to_be_bytes(), height.to_be_bytes()].concat();
    head.extend([8, 2, 0, 0, 0]); // 8 bits each of red, green, blue; not interlaced
    chunk(b"IHDR", &head);
    let row = [&[0][..], &colour.repeat(width as usize)].concat();
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    packed
        .write_all(&row.repeat(height as usize))
        .expect("writing to memory cannot fail");
    chunk(
        b"IDAT",
        &packed.finish().expect("writing to memory cannot fail"),
    );
    chunk(b"IEND", b"");
    out
}

/// A TrueType font of two glyphs: an empty one, and a box for every letter from `A` to `z`.
pub(crate) fn font() -> Vec<u8> {
    let words = |words: &[i32]| -> Vec<u8> {
        words
            .iter()
            .flat_map(|word| (*word as u16).to_be_bytes())
            .collect()
    };
    // One contour of four corners, all on the curve, each as a pair of 16-bit steps.
    let mut glyph = words(&[1, 100, 0, 900, 800, 3, 0]);
    glyph.extend([1, 1, 1, 1]);
    glyph.extend(words(&[100, 0, 800, 0]));
    glyph.extend(words(&[0, 800, 0, -800]));
    let glyph_len = glyph.len() as i32;
    // Unicode (Windows, BMP) to glyphs in format 4: two segments, the letters and the last one that the format requires. The glyphs
    // of the letters are in an array that starts 4 bytes after its offset field.
    let letters = 0x7a - 0x41 + 1;
    let mut cmap = words(&[0, 1, 3, 1, 0, 12, 4, 32 + 2 * letters, 0, 4, 4, 1, 0]);
    cmap.extend(words(&[0x7a, 0xffff, 0, 0x41, 0xffff, 0, 1, 4, 0]));
    cmap.extend(words(&[1; 0x7a - 0x41 + 1]));
    let mut head = words(&[1, 0, 1, 0, 0, 0, 0x5f0f, 0x3cf5, 0, 1000]);
    head.extend([0; 16]); // created in 1904
    head.extend(words(&[0, 0, 1000, 1000, 0, 8, 2, 0, 0]));
    let hhea = words(&[
        1, 0, 900, -100, 0, 1000, 0, 0, 1000, 1, 0, 0, 0, 0, 0, 0, 0, 2,
    ]);
    let maxp = words(&[1, 0, 2, 4, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]);
    let hmtx = words(&[1000, 0, 1000, 100]);
    let loca = words(&[0, 0, (glyph_len + 1) / 2]);
    let mut post = words(&[3, 0, 0, 0, 0, 0]);
    post.extend([0; 20]);
    let name = words(&[0, 0, 6]);
    let mut os2 = words(&[
        3, 500, 400, 5, 0, 650, 600, 0, 75, 650, 600, 0, 350, 50, 250, 0,
    ]);
    os2.extend([0; 10]); // PANOSE
    os2.extend([0; 16]); // Unicode ranges
    os2.extend(b"none");
    os2.extend(words(&[0x40, 0x41, 0x7a, 900, -100, 0, 900, 100]));
    os2.extend([0; 8]); // code pages
    os2.extend(words(&[500, 700, 0, 0x20, 0]));
    let mut tables = [
        (b"OS/2", os2),
        (b"cmap", cmap),
        (b"glyf", glyph),
        (b"head", head),
        (b"hhea", hhea),
        (b"hmtx", hmtx),
        (b"loca", loca),
        (b"maxp", maxp),
        (b"name", name),
        (b"post", post),
    ];
    let mut out = words(&[1, 0, tables.len() as i32, 128, 3, 32]);
    let mut at = out.len() + 16 * tables.len();
    let mut bodies = Vec::new();
    for (tag, table) in &mut tables {
        let len = table.len();
        table.resize(len.next_multiple_of(4), 0);
        let sum = table.chunks(4).fold(0_u32, |sum, four| {
            sum.wrapping_add(u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
        });
        out.extend(*tag);
        out.extend(sum.to_be_bytes());
        out.extend((at as u32).to_be_bytes());
        out.extend((len as u32).to_be_bytes());
        at += table.len();
        bodies.extend_from_slice(table);
    }
    out.extend(bodies);
    out
}
