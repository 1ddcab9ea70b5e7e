//! Networks and TCP eras by name, each with its source; or by settings.
//!
//! ```text
//! spec    = base [ "," setting ]*  |  setting [ "," setting ]*
//! base    = "dsl" | "cable" | ... | "mineki:512kbit" | "lulic:1024kbit:50ms"
//! setting = down=2mbit up=384kbit | rate=2mbit      bit, kbit, mbit, gbit; or trace:FILE
//!           rtt=100ms  jitter=5ms                   ns, us, ms, s
//!           loss=1% | loss_up=0.5%,loss_down=0.01   burst=4: mean packets lost in a row
//!           queue=50p | queue=64kb                  packets; b, kb (1000), kib (1024); codel, fq_codel
//!           pipe=two | pipe=shared,passes=2         reorder=yes | no
//!           tick=10ms: packets leave a pipe with a timer's ticks
//!           tcp=2009 | 2013 | today                 iw=10: initial window, segments
//! ```
//!
//! A name alone is a whole network, and settings after it change it. Without a name, rates and `rtt` are required. A probability is a
//! percentage with its sign, or a fraction of at most 0.1 without: `loss=1` could be all packets or one in a hundred, so it is
//! rejected rather than guessed.

mod error;
mod named;
mod network_profile;
mod parse;
mod print;
mod value;

pub use error::ProfileError;
pub use named::{TEMPLATES, named, names};
pub use network_profile::Profile;
pub use value::Era;
