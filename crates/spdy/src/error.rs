//! What a caller must tell apart. (Contract)
