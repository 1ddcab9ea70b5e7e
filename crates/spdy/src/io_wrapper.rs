//! Wrappers of connections: the methods of `AsyncRead` and `AsyncWrite` that only call the wrapped value.

/// Writes the named methods of [`AsyncRead`](tokio::io::AsyncRead) or [`AsyncWrite`](tokio::io::AsyncWrite). Each calls the same method of
/// the wrapped value, which is a field or a method of `self`.
///
/// The methods must be named because the others have defaults: without `poll_write_vectored` and `is_write_vectored`, a wrapper
/// writes one slice at a time.
///
/// For the crates of this workspace, which depend on tokio. It is not part of the library's API.
#[doc(hidden)]
#[macro_export]
macro_rules! forward_io {
    ($($method:ident),+ => $self:ident.$($inner:tt)+) => {
        $crate::forward_io! { @each $self [$($inner)+] $($method)+ }
    };
    (@each $self:ident $inner:tt $($method:ident)+) => {
        $($crate::forward_io! { @$method $self $inner })+
    };
    (@poll_read $self:ident [$($inner:tt)+]) => {
        fn poll_read(
            mut $self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            buf: &mut ::tokio::io::ReadBuf<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            ::std::pin::Pin::new(&mut $self.$($inner)+).poll_read(cx, buf)
        }
    };
    (@poll_write $self:ident [$($inner:tt)+]) => {
        fn poll_write(
            mut $self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            bytes: &[u8],
        ) -> ::std::task::Poll<::std::io::Result<usize>> {
            ::std::pin::Pin::new(&mut $self.$($inner)+).poll_write(cx, bytes)
        }
    };
    (@poll_write_vectored $self:ident [$($inner:tt)+]) => {
        fn poll_write_vectored(
            mut $self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            slices: &[::std::io::IoSlice<'_>],
        ) -> ::std::task::Poll<::std::io::Result<usize>> {
            ::std::pin::Pin::new(&mut $self.$($inner)+).poll_write_vectored(cx, slices)
        }
    };
    (@is_write_vectored $self:ident [$($inner:tt)+]) => {
        fn is_write_vectored(&$self) -> bool {
            $self.$($inner)+.is_write_vectored()
        }
    };
    (@poll_flush $self:ident [$($inner:tt)+]) => {
        fn poll_flush(
            mut $self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            ::std::pin::Pin::new(&mut $self.$($inner)+).poll_flush(cx)
        }
    };
    (@poll_shutdown $self:ident [$($inner:tt)+]) => {
        fn poll_shutdown(
            mut $self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            ::std::pin::Pin::new(&mut $self.$($inner)+).poll_shutdown(cx)
        }
    };
}
