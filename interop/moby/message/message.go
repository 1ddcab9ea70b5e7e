// Package message implements HTTP on streams of spdystream, which only handles header maps and bytes.
package message

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"

	"github.com/moby/spdystream"
)

// Protocol is the ALPN protocol. The frames have version 3 and there is no flow control, but Kubernetes and Docker
// call it SPDY/3.1.
const Protocol = "spdy/3.1"

// MaxWrite is the maximum number of bytes of one Write and so of one DATA frame: the library does not split writes,
// and a frame holds less than 16 MiB.
const MaxWrite = 1 << 20

// Request is the head of a request. The library does not interpret the names with a colon.
func Request(method, scheme, host, path string) http.Header {
	return http.Header{
		":method":    {method},
		":scheme":    {scheme},
		":host":      {host},
		":path":      {path},
		":version":   {"HTTP/1.1"},
		"User-Agent": {"spdy-interop-moby"},
	}
}

// Response is the head of a response with a body of length bytes.
func Response(status string, length int) http.Header {
	return http.Header{
		":status":        {status},
		":version":       {"HTTP/1.1"},
		"Content-Type":   {"application/octet-stream"},
		"Content-Length": {strconv.Itoa(length)},
	}
}

// Send writes body and closes the local half of the stream.
func Send(stream *spdystream.Stream, body []byte) error {
	for len(body) > 0 {
		n := len(body)
		if n > MaxWrite {
			n = MaxWrite
		}
		if _, err := stream.Write(body[:n]); err != nil {
			return err
		}
		body = body[n:]
	}
	return stream.Close()
}

// Digest reads a stream to its end. It returns the number of bytes and their SHA-256 in hexadecimal.
func Digest(stream io.Reader) (int64, string, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, stream)
	return n, hex.EncodeToString(sum.Sum(nil)), err
}
