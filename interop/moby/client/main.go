// Fetches every URL at once over one session of moby/spdystream and prints the responses as JSON.
//
//	client [--repeat N] [--post FILE] [--seconds N] [--pushes N] URL...
//
// http: uses SPDY by prior knowledge, https: SPDY by ALPN; the certificate is not verified. The exit code is 0 if
// every response is complete and, with --pushes, that many pushes have ended. The library does not expose the headers
// of a SYN_REPLY, so each status is 0.
package main

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/moby/spdystream"
	"spdy/interop/moby/message"
)

type response struct {
	URL    string  `json:"url"`
	Status int     `json:"status"`
	Bytes  int64   `json:"bytes"`
	SHA256 *string `json:"sha256"`
	Error  *string `json:"error"`
}

type report struct {
	Peer      string     `json:"peer"`
	Protocol  string     `json:"protocol"`
	Responses []response `json:"responses"`
	Pushed    []response `json:"pushed"`
	Errors    []string   `json:"errors"`
}

func main() {
	repeat := flag.Int("repeat", 1, "number of times to request each URL")
	post := flag.String("post", "", "file to POST to every URL")
	pushes := flag.Int("pushes", 0, "number of pushes to wait for: the library may report them after the responses")
	seconds := flag.Int("seconds", 60, "timeout in seconds")
	flag.Parse()
	var urls []*url.URL
	for round := 0; round < *repeat; round++ {
		for _, arg := range flag.Args() {
			parsed, err := url.Parse(arg)
			if err != nil {
				log.Fatal(err)
			}
			urls = append(urls, parsed)
		}
	}
	if len(urls) == 0 {
		log.Fatal("expected URLs of one origin")
	}
	var body []byte
	if *post != "" {
		var err error
		if body, err = os.ReadFile(*post); err != nil {
			log.Fatal(err)
		}
	}

	out := report{
		Peer: "moby", Protocol: message.Protocol,
		Responses: make([]response, len(urls)), Pushed: []response{}, Errors: []string{},
	}
	var lock sync.Mutex // guards out while streams write to it
	var streams sync.WaitGroup
	streams.Add(*pushes)
	session, err := connect(urls[0])
	if err != nil {
		log.Fatal(err)
	}
	go session.Serve(func(pushed *spdystream.Stream) {
		head := pushed.Headers()
		pushed.SendReply(http.Header{}, true) // without a reply the library drops DATA
		go pushed.ReceiveHeader()             // unread HEADERS block the DATA after them
		go func() {
			one := response{URL: head.Get(":path")}
			one.digest(pushed)
			lock.Lock()
			out.Pushed = append(out.Pushed, one)
			expected := len(out.Pushed) <= *pushes
			lock.Unlock()
			if expected {
				streams.Done()
			}
		}()
	})
	for index, target := range urls {
		index, target := index, target
		streams.Add(1)
		go func() {
			defer streams.Done()
			one := fetch(session, target, *post != "", body)
			lock.Lock()
			out.Responses[index] = one
			lock.Unlock()
		}()
	}
	done := make(chan struct{})
	go func() { streams.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Duration(*seconds) * time.Second):
		lock.Lock()
		out.Errors = append(out.Errors, fmt.Sprintf("not done after %d s", *seconds))
		lock.Unlock()
	}
	lock.Lock()
	complete := len(out.Errors) == 0
	for _, one := range out.Responses {
		complete = complete && one.SHA256 != nil
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		log.Fatal(err)
	}
	if !complete {
		os.Exit(1)
	}
}

func connect(target *url.URL) (*spdystream.Connection, error) {
	var transport net.Conn
	var err error
	if target.Scheme == "https" {
		var secure *tls.Conn
		secure, err = tls.Dial("tcp", target.Host, &tls.Config{
			InsecureSkipVerify: true,
			NextProtos:         []string{message.Protocol},
		})
		if err == nil {
			if negotiated := secure.ConnectionState().NegotiatedProtocol; negotiated != message.Protocol {
				err = fmt.Errorf("negotiated %q, expected %s", negotiated, message.Protocol)
			}
		}
		transport = secure
	} else {
		transport, err = net.Dial("tcp", target.Host)
	}
	if err != nil {
		return nil, err
	}
	return spdystream.NewConnection(transport, false)
}

func fetch(session *spdystream.Connection, target *url.URL, post bool, body []byte) response {
	out := response{URL: target.String()}
	method := "GET"
	if post {
		method = "POST"
	}
	head := message.Request(method, target.Scheme, target.Host, target.RequestURI())
	if post {
		head.Set("content-length", strconv.Itoa(len(body)))
	}
	stream, err := session.CreateStream(head, nil, !post)
	if err != nil {
		return out.failed(err)
	}
	if post {
		go message.Send(stream, body)
	}
	if err := stream.Wait(); err != nil {
		return out.failed(fmt.Errorf("no reply: %w", err))
	}
	out.digest(stream)
	return out
}

func (r *response) digest(stream *spdystream.Stream) {
	n, sum, err := message.Digest(stream)
	r.Bytes = n
	if err != nil {
		*r = r.failed(err)
		return
	}
	r.SHA256 = &sum
}

func (r response) failed(err error) response {
	text := err.Error()
	r.Error = &text
	return r
}
