module spdy/interop/moby

go 1.19

require github.com/moby/spdystream v0.5.1
