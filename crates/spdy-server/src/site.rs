//! What is served: answers by host name and target, all in memory. (Contract)

use std::net::IpAddr;

use spdy_page::replica::Replica;

/// Answers by host, method and target (path and query).
pub struct Site { _private: () }
impl Site {
    /// Literal heads' headers kept, hop-by-hop ones dropped, content-length set right.
    pub fn of_replica(replica: &Replica) -> Self { let _ = replica; todo!() }
    /// Host names served, in the order of the replica, with the recorded address of each.
    pub fn hosts(&self) -> Vec<(String, Option<IpAddr>)> { todo!() }
}
