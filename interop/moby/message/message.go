// Package message puts HTTP on the streams of spdystream, which knows header maps and bytes only.
package message

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"

	"github.com/moby/spdystream"
)

// Protocol is what TLS agrees on. The frames say version 3, and there are no windows; Kubernetes and Docker
// call it SPDY/3.1.
const Protocol = "spdy/3.1"

// MaxWrite bounds the bytes of one Write, and so of one DATA frame: the library cuts nothing, and a frame
// holds less than 16 MiB.
const MaxWrite = 1 << 20

// Request is the head of a request. The names with a colon are nothing to the library.
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

// Send writes body and ends our half of the stream.
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

// Digest reads a stream to its end: how many bytes came, and their SHA-256 in hexadecimal.
func Digest(stream io.Reader) (int64, string, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, stream)
	return n, hex.EncodeToString(sum.Sum(nil)), err
}
