//! A site in memory and its answers, over whatever connection they are asked. (Contract)

pub mod serve;
pub mod site;
// to come: respond.rs (HEAD, ranges, conditional requests, 404/405/421/431), directory.rs (a folder as a site), listen.rs (real sockets)
