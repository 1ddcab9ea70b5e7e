//! Compares a queue of the model with the kernel's: `scripts/compare-queue-with-kernel` runs this at both ends of a link with `tc`.
//!
//! ```text
//! kernel_queue send ADDRESS SECONDS     sends UDP packets of four flows, and prints: time, flow, IP bytes
//! kernel_queue receive SECONDS          prints the packets that arrive: time, flow, number in the flow
//! kernel_queue compare QUEUE BPS SENT RECEIVED
//! ```
//!
//! `compare` offers the sent packets to the model at their own times. So both queues have the same arrivals, and only their decisions
//! differ. `BPS` is the kernel's rate, which counts the headers of Ethernet.

#![allow(clippy::print_stdout, reason = "prints its results")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use spdy_clock::Instant;
use spdy_netem::path::{Direction, Path, PathConfig, PathOutcome};
use spdy_netem::profile::Profile;
use spdy_netem::queue::FlowKey;

/// Headers of IP and UDP.
const HEADERS_LEN_BYTES: usize = 28;
const FIRST_PORT: u16 = 5_000;
/// For all packets of a full queue, so that sending never blocks.
const SEND_BUFFER_BYTES: usize = 64 * 1024 * 1024;
/// IP bytes of a flow's packets, and the time between them. At 4 Mbit/s: 100, 50 and 25 % of the rate, and a sparse flow.
const FLOWS: [(usize, Duration); 4] = [
    (1_500, Duration::from_micros(3_000)),
    (1_500, Duration::from_micros(6_000)),
    (750, Duration::from_micros(6_000)),
    (100, Duration::from_micros(20_000)),
];

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["send", address, seconds] => send(address, Duration::from_secs(seconds.parse()?)),
        ["receive", seconds] => receive(Duration::from_secs(seconds.parse()?)),
        ["compare", queue, bps, sent, received] => compare(queue, bps.parse()?, sent, received),
        _ => Err("expected send, receive or compare, with its arguments".into()),
    }
}

/// Time of day, nanoseconds.
fn nanos() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = time.map_or(0, |time| time.as_nanos());
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

fn send(address: &str, duration: Duration) -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    setsockopt(&socket, sockopt::SndBufForce, &SEND_BUFFER_BYTES)?;
    let begin = nanos();
    let end = begin + u64::try_from(duration.as_nanos())?;
    let mut next = [begin; FLOWS.len()];
    let mut numbers = [0u32; FLOWS.len()];
    let mut sent = Vec::new();
    loop {
        let earliest = next.iter().enumerate().min_by_key(|(_, at)| **at);
        let (flow, at) = earliest.map_or((0, end), |(flow, at)| (flow, *at));
        if at >= end {
            break;
        }
        thread::sleep(Duration::from_nanos(at.saturating_sub(nanos())));
        let (len_bytes, gap) = FLOWS[flow];
        let mut payload = vec![0; len_bytes - HEADERS_LEN_BYTES];
        payload[..4].copy_from_slice(&numbers[flow].to_be_bytes());
        sent.push((nanos(), flow, len_bytes));
        socket.send_to(&payload, (address, FIRST_PORT + u16::try_from(flow)?))?;
        numbers[flow] += 1;
        next[flow] += u64::try_from(gap.as_nanos())?;
    }
    for (at, flow, len_bytes) in sent {
        println!("{at} {flow} {len_bytes}");
    }
    Ok(())
}

fn receive(duration: Duration) -> Result<()> {
    let end = SystemTime::now() + duration;
    let receive_flow = |port: u16| -> io::Result<Vec<(u64, u32)>> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        let mut received = Vec::new();
        while SystemTime::now() < end {
            received.extend(receive_packet(&socket));
        }
        Ok(received)
    };
    let receive_flow = &receive_flow;
    let received = thread::scope(|scope| {
        let ports = FIRST_PORT..FIRST_PORT + FLOWS.len() as u16;
        let threads: Vec<_> = ports
            .map(|port| scope.spawn(move || receive_flow(port)))
            .collect();
        let results = threads
            .into_iter()
            .map(|it| it.join().expect("no thread panics"));
        results.collect::<io::Result<Vec<_>>>()
    })?;
    for (flow, received) in received.into_iter().enumerate() {
        for (at, number) in received {
            println!("{at} {flow} {number}");
        }
    }
    Ok(())
}

/// When the kernel received the next packet, and its number; `None` if none came.
fn receive_packet(socket: &UdpSocket) -> Option<(u64, u32)> {
    let mut number = [0; 4];
    let mut buffers = [IoSliceMut::new(&mut number)];
    let mut control = cmsg_space!(TimeSpec);
    let flags = MsgFlags::empty();
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut buffers, Some(&mut control), flags);
    let message = message.ok()?;
    let at = message.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(at) => Some(Duration::from(at)),
        _ => None,
    })?;
    Some((
        u64::try_from(at.as_nanos()).ok()?,
        u32::from_be_bytes(number),
    ))
}

/// The lines of a file: three numbers each.
fn lines(file: &str) -> Result<Vec<[u64; 3]>> {
    let numbers = |line: &str| -> Result<[u64; 3]> {
        let numbers: std::result::Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
        let expected = |_| format!("{file}: found {line:?}, expected three numbers");
        Ok(numbers?.try_into().map_err(expected)?)
    };
    fs::read_to_string(file)?.lines().map(numbers).collect()
}

/// Delays in ms of the packets that arrived, by flow.
type Delays = [Vec<f64>; FLOWS.len()];

fn compare(queue: &str, bps: u64, sent: &str, received: &str) -> Result<()> {
    let sent = lines(sent)?;
    let mut sent_at = [const { Vec::new() }; FLOWS.len()];
    for [at, flow, _] in &sent {
        sent_at[usize::try_from(*flow)?].push(*at);
    }
    let mut kernel = Delays::default();
    for [at, flow, number] in lines(received)? {
        let flow = usize::try_from(flow)?;
        let sent_at = sent_at[flow][usize::try_from(number)?];
        kernel[flow].push(Duration::from_nanos(at.saturating_sub(sent_at)).as_secs_f64() * 1e3);
    }
    let model = Model::run(queue, bps, &sent)?.delays;
    println!("            arrived                     mean delay, ms");
    println!("flow   sent  kernel   model  error %   kernel    model  error %");
    let row = |name: &str, offered: usize, kernel: &[f64], model: &[f64]| {
        let mean = |delays: &[f64]| delays.iter().sum::<f64>() / delays.len() as f64;
        let error = |model: f64, kernel: f64| (model / kernel - 1.0) * 100.0;
        let (kernel_count, model_count) = (kernel.len(), model.len());
        let (kernel_ms, model_ms) = (mean(kernel), mean(model));
        println!(
            "{name:>4} {offered:>6} {kernel_count:>7} {model_count:>7} {:>8.2} {kernel_ms:>8.2} {model_ms:>8.2} {:>8.2}",
            error(model_count as f64, kernel_count as f64),
            error(model_ms, kernel_ms),
        );
    };
    for flow in 0..FLOWS.len() {
        row(
            &flow.to_string(),
            sent_at[flow].len(),
            &kernel[flow],
            &model[flow],
        );
    }
    row("all", sent.len(), &kernel.concat(), &model.concat());
    Ok(())
}

/// The packets in the model.
#[derive(Default)]
struct Model {
    delays: Delays,
}

impl Model {
    fn run(queue: &str, bps: u64, sent: &[[u64; 3]]) -> Result<Self> {
        let profile: Profile = format!("rate=1mbit,rtt=0,queue={queue}").parse()?;
        // The kernel's rate includes 14 bytes of Ethernet for each packet; most bytes are in packets of 1,500.
        let ip_bps = bps * 1_500 / 1_514;
        let config = PathConfig {
            queue: profile.path.queue,
            ..PathConfig::new(ip_bps, ip_bps, Duration::ZERO)
        };
        let mut path = Path::new(&config, 1);
        let mut model = Self::default();
        let mut waiting = BTreeMap::new();
        let origin = sent.first().map_or(0, |[at, ..]| *at);
        let mut leave = |path: &mut Path, waiting: &mut BTreeMap<_, _>, now| {
            while let Some(departure) = path.poll_departure(now) {
                let packet = waiting.remove(&departure.ticket);
                model.leave(packet.expect("each ticket has a packet"), departure.outcome);
            }
        };
        for &[at, flow, len_bytes] in sent {
            let now = Instant::from_nanos(at - origin);
            let key = FlowKey::new(flow);
            let outcome = path.offer(now, Direction::Down, key, usize::try_from(len_bytes)?);
            let PathOutcome::Waits(ticket) = outcome else {
                return Err(format!("expected codel or fq_codel, found {queue}").into());
            };
            waiting.insert(ticket, (now, usize::try_from(flow)?));
            leave(&mut path, &mut waiting, now);
        }
        leave(&mut path, &mut waiting, Instant::FAR_FUTURE);
        Ok(model)
    }

    fn leave(&mut self, (since, flow): (Instant, usize), outcome: PathOutcome) {
        if let PathOutcome::Arrives(at) = outcome {
            self.delays[flow].push((at - since).as_secs_f64() * 1e3);
        }
    }
}
