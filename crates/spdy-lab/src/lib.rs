//! Measuring page loads. (Contract)

pub mod measure;
// sim/ (executor.rs: virtual-time executor; runtime; socket.rs: AsyncRead+AsyncWrite over spdy-netem's TCP; network.rs: hosts, DNS, packets counted),
// page_load.rs (a browser's order of requests, sans-IO), browser.rs (drives page_load over spdy-client's pool), race.rs, stats.rs, report/
