//! Networks and TCP eras by name, each with its source. (Contract: `named(name) -> Option<PathConfig>`, `names()`,
//! parse of "down=2mbit,up=384kbit,rtt=100ms,loss=0,...")
