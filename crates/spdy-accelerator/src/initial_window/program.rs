//! The BPF program, as the object file that aya loads.
//!
//! ```c
//! SEC("cgroup/setsockopt") int initial_window(struct bpf_sockopt *option) {
//!     if (option->level != IPPROTO_TCP || option->optname != TCP_BPF_IW) {
//!         if (option->optlen > 4096) option->optlen = 0;                             // the value is longer than was copied
//!         return 1;                                                                  // the system handles it
//!     }
//!     u32 *value = option->optval;
//!     if (value + 1 > option->optval_end) return 0;                                  // EPERM
//!     u32 packets = *value;
//!     if (packets > 64) return 0;                                                    // other programs of the group may ask too
//!     if (bpf_setsockopt(option->sk, IPPROTO_TCP, TCP_BPF_IW, &packets, 4)) return 0;
//!     option->optlen = -1;                                                           // handled
//!     return 1;
//! }
//! ```

use object::write::{Object, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope,
};
use spdy_net::congestion::MAX_INITIAL_WINDOW;

/// The name of the program in its object file.
pub(super) const NAME: &str = "initial_window";
/// Its section names the kind of hook.
const SECTION: &[u8] = b"cgroup/setsockopt";
/// The kernel offers some functions to programs of a licence that includes the GPL only.
const LICENCE: &[u8] = b"Dual MIT/GPL\0";

const IPPROTO_TCP: i32 = 6;
const TCP_BPF_IW: i32 = 1001;
/// The largest window that the program sets.
const MAX_PACKETS: i32 = MAX_INITIAL_WINDOW as i32;
/// Bytes of a value that the kernel copies for the program.
const COPIED_BYTES: i32 = 4096;
/// The number of the function `bpf_setsockopt`.
const BPF_SETSOCKOPT: i32 = 49;

/// Offsets in `struct bpf_sockopt`.
mod field {
    pub(super) const SK: i16 = 0;
    pub(super) const OPTVAL: i16 = 8;
    pub(super) const OPTVAL_END: i16 = 16;
    pub(super) const LEVEL: i16 = 24;
    pub(super) const OPTNAME: i16 = 28;
    pub(super) const OPTLEN: i16 = 32;
}

/// One instruction: an operation, two registers, an offset and a constant (RFC 9669 §3).
struct Instruction {
    operation: u8,
    to: u8,
    from: u8,
    offset: i16,
    constant: i32,
}

impl Instruction {
    const fn new(operation: u8, to: u8, from: u8, offset: i16, constant: i32) -> Self {
        Self {
            operation,
            to,
            from,
            offset,
            constant,
        }
    }

    /// `to = from`
    const fn copy(to: u8, from: u8) -> Self {
        Self::new(0xbf, to, from, 0, 0)
    }

    /// `to = constant`
    const fn set(to: u8, constant: i32) -> Self {
        Self::new(0xb7, to, 0, 0, constant)
    }

    /// `to += constant`
    const fn add(to: u8, constant: i32) -> Self {
        Self::new(0x07, to, 0, 0, constant)
    }

    /// `to = *(u32 *)(from + offset)`
    const fn load_u32(to: u8, from: u8, offset: i16) -> Self {
        Self::new(0x61, to, from, offset, 0)
    }

    /// `to = *(u64 *)(from + offset)`
    const fn load_u64(to: u8, from: u8, offset: i16) -> Self {
        Self::new(0x79, to, from, offset, 0)
    }

    /// `*(u32 *)(to + offset) = from`
    const fn store_u32(to: u8, offset: i16, from: u8) -> Self {
        Self::new(0x63, to, from, offset, 0)
    }

    /// Skips `count` instructions if `a != constant`.
    const fn skip_unless_equal(count: i16, a: u8, constant: i32) -> Self {
        Self::new(0x55, a, 0, count, constant)
    }

    /// Skips `count` instructions if `a > constant`, of 64 bits without a sign.
    const fn skip_if_more(count: i16, a: u8, constant: i32) -> Self {
        Self::new(0x25, a, 0, count, constant)
    }

    /// Skips `count` instructions if `a <= constant`, of 32 bits with a sign.
    const fn skip_if_at_most(count: i16, a: u8, constant: i32) -> Self {
        Self::new(0xd6, a, 0, count, constant)
    }

    /// Skips `count` instructions if `a > b`.
    const fn skip_if_greater(count: i16, a: u8, b: u8) -> Self {
        Self::new(0x2d, a, b, count, 0)
    }

    /// Skips `count` instructions.
    const fn skip_always(count: i16) -> Self {
        Self::new(0x05, 0, 0, count, 0)
    }

    /// `r0 = function(r1, r2, r3, r4, r5)`
    const fn call(function: i32) -> Self {
        Self::new(0x85, 0, 0, 0, function)
    }

    /// Returns r0.
    const fn exit() -> Self {
        Self::new(0x95, 0, 0, 0, 0)
    }

    fn encode(&self) -> [u8; 8] {
        // The kernel reads instructions in the byte order of the machine. The two registers share a byte.
        let registers = if cfg!(target_endian = "little") {
            self.from << 4 | self.to
        } else {
            self.to << 4 | self.from
        };
        let mut bytes = [self.operation, registers, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&self.offset.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.constant.to_ne_bytes());
        bytes
    }
}

/// The instructions. Register 1 has the argument at the start, and register 10 is the end of the stack.
fn instructions() -> [Instruction; 31] {
    use Instruction as I;
    [
        I::copy(6, 1),
        I::load_u32(2, 6, field::LEVEL),
        I::skip_unless_equal(20, 2, IPPROTO_TCP), // to PASS
        I::load_u32(2, 6, field::OPTNAME),
        I::skip_unless_equal(18, 2, TCP_BPF_IW), // to PASS
        I::load_u64(4, 6, field::OPTVAL),
        I::load_u64(2, 6, field::OPTVAL_END),
        I::copy(3, 4),
        I::add(3, 4),
        I::skip_if_greater(19, 3, 2), // to FAIL
        I::load_u32(2, 4, 0),
        I::skip_if_more(17, 2, MAX_PACKETS), // to FAIL
        I::store_u32(10, -4, 2),
        I::load_u64(1, 6, field::SK),
        I::set(2, IPPROTO_TCP),
        I::set(3, TCP_BPF_IW),
        I::copy(4, 10),
        I::add(4, -4),
        I::set(5, 4),
        I::call(BPF_SETSOCKOPT),
        I::skip_unless_equal(8, 0, 0), // to FAIL
        I::set(1, -1),
        I::skip_always(3), // to DONE
        // PASS
        I::load_u32(2, 6, field::OPTLEN),
        I::skip_if_at_most(2, 2, COPIED_BYTES), // to RETURN
        I::set(1, 0),
        // DONE
        I::store_u32(6, field::OPTLEN, 1),
        // RETURN
        I::set(0, 1),
        I::exit(),
        // FAIL
        I::set(0, 0),
        I::exit(),
    ]
}

/// The object file.
pub(super) fn object_file() -> Result<Vec<u8>, object::write::Error> {
    let endianness = if cfg!(target_endian = "little") {
        Endianness::Little
    } else {
        Endianness::Big
    };
    let mut file = Object::new(BinaryFormat::Elf, Architecture::Bpf, endianness);
    let code: Vec<u8> = instructions()
        .iter()
        .flat_map(Instruction::encode)
        .collect();
    let section = file.add_section(Vec::new(), SECTION.to_vec(), SectionKind::Text);
    file.append_section_data(section, &code, 8);
    file.add_symbol(Symbol {
        name: NAME.into(),
        value: 0,
        size: code.len() as u64,
        kind: SymbolKind::Text,
        scope: SymbolScope::Dynamic,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    let licence = file.add_section(Vec::new(), b"license".to_vec(), SectionKind::Data);
    file.append_section_data(licence, LICENCE, 1);
    file.write()
}
