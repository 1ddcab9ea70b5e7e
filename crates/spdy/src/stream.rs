//! A raw stream: `AsyncRead + AsyncWrite`. (Contract)
