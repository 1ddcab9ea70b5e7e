// Serves a folder with moby/spdystream, over plain TCP or (with --cert and --key) TLS with ALPN.
//
//	server --root DIR [--port 0] [--cert FILE --key FILE]
//
// The first line of stdout is JSON and contains the port. POST returns the request body; GET /a?push=b,c pushes
// /b and /c with /a.
package main

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/spdystream"
	"spdy/interop/moby/message"
)

func main() {
	root := flag.String("root", ".", "folder to serve")
	port := flag.Int("port", 0, "port on loopback; 0 picks a free one")
	cert := flag.String("cert", "", "certificate, PEM")
	key := flag.String("key", "", "its key, PEM")
	flag.Parse()

	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(*port))
	if err != nil {
		log.Fatal(err)
	}
	port = &listener.Addr().(*net.TCPAddr).Port
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			log.Fatal(err)
		}
		listener = tls.NewListener(listener, &tls.Config{
			Certificates: []tls.Certificate{pair},
			NextProtos:   []string{message.Protocol},
		})
	}
	ready := map[string]any{"peer": "moby", "port": *port, "protocol": message.Protocol, "tls": *cert != ""}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		log.Fatal(err)
	}
	for {
		transport, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(transport, *root)
	}
}

func serve(transport net.Conn, root string) {
	defer transport.Close()
	session, err := spdystream.NewConnection(transport, true)
	if err != nil {
		log.Print(err)
		return
	}
	// Without a timeout, a session waits forever for its open streams after the client has disconnected.
	session.SetCloseTimeout(5 * time.Second)
	session.Serve(func(stream *spdystream.Stream) { respond(stream, root) })
}

// respond sends the head before it returns: the library drops DATA of a stream without a reply.
func respond(stream *spdystream.Stream, root string) {
	request := stream.Headers()
	target, err := url.Parse(first(request, ":path"))
	if err != nil {
		stream.Reset()
		return
	}
	if first(request, ":method") == "POST" {
		head := http.Header{":status": {"200 OK"}, ":version": {"HTTP/1.1"}}
		if stream.SendReply(head, false) != nil {
			return
		}
		go func() {
			if body, err := io.ReadAll(stream); err == nil {
				message.Send(stream, body)
			}
		}()
		return
	}
	status := "200 OK"
	body, err := file(root, target.Path)
	if err != nil {
		status, body = "404 Not Found", []byte("no such file\n")
	}
	for _, name := range strings.FieldsFunc(target.Query().Get("push"), func(c rune) bool { return c == ',' }) {
		push(stream, request, root, name)
	}
	if stream.SendReply(message.Response(status, len(body)), false) == nil {
		go message.Send(stream, body)
	}
}

// push sends all headers in SYN_STREAM, without FLAG_UNIDIRECTIONAL, which the library cannot set.
func push(parent *spdystream.Stream, request http.Header, root, name string) {
	body, err := file(root, name)
	if err != nil {
		log.Print(err)
		return
	}
	head := message.Response("200 OK", len(body))
	for field, value := range message.Request("GET", first(request, ":scheme"), first(request, ":host"), "/"+name) {
		head[field] = value
	}
	stream, err := parent.CreateSubStream(head, false)
	if err != nil {
		log.Print(err)
		return
	}
	go message.Send(stream, body)
}

// cache holds files by path. Each is read once, so that measurements do not include the disk.
var cache sync.Map

func file(root, path string) ([]byte, error) {
	if body, ok := cache.Load(path); ok {
		return body.([]byte), nil
	}
	body, err := os.ReadFile(filepath.Join(root, filepath.Clean("/"+path)))
	if err == nil {
		cache.Store(path, body)
	}
	return body, err
}

func first(header http.Header, name string) string {
	if values := header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}
