// Client for exec, attach and port-forward with client-go, the library of kubectl.
//
//	client -mode exec|wsexec|anyexec       -url URL [-stdin BYTES] [-tty]   (attach: the same with another URL)
//	client -mode portforward|wsportforward -url URL -remote PORT [-connections N] [-bytes N]
//
// The ws modes use WebSocket: exec with the sub-protocol in -protocol (v5.channel.k8s.io), port-forward with SPDY
// inside WebSocket. anyexec tries WebSocket and then SPDY, like kubectl. Before version 5 the client cannot signal
// the end of stdin, so commands must not wait for it. Prints one line of JSON and exits with 0, even if the command
// failed: "error" is the error, "code" the exit code of the command.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
)

var (
	mode        = flag.String("mode", "exec", "exec, wsexec, anyexec, portforward or wsportforward")
	address     = flag.String("url", "", "URL of the upgrade request")
	stdin       = flag.Int("stdin", 0, "bytes to send on stdin")
	protocol    = flag.String("protocol", "", "sub-protocol of wsexec (default: chosen by client-go)")
	tty         = flag.Bool("tty", false, "request a terminal and send two sizes")
	remote      = flag.Int("remote", 0, "port to forward to")
	connections = flag.Int("connections", 3, "concurrent connections through the forwarded port")
	length      = flag.Int("bytes", 1_000_000, "bytes to send on each connection and to receive back")
	timeout     = flag.Duration("timeout", 20*time.Second, "timeout of the whole run")
)

// received collects data and reports its length and digest.
type received struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (r *received) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.data.Write(p)
}

func (r *received) report() map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	digest := sha256.Sum256(r.data.Bytes())
	text := r.data.String()
	return map[string]any{"bytes": len(text), "sha256": hex.EncodeToString(digest[:]), "text": text[:min(len(text), 500)]}
}

// pattern returns n bytes that depend on their position and the seed. Every driver and test uses the same pattern.
func pattern(n, seed int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(i ^ i>>8 ^ i>>16 ^ seed)
	}
	return out
}

// sizes is a queue of terminal sizes.
type sizes []remotecommand.TerminalSize

func (s *sizes) Next() *remotecommand.TerminalSize {
	if len(*s) == 0 {
		return nil
	}
	size := (*s)[0]
	*s = (*s)[1:]
	return &size
}

func main() {
	flag.Parse()
	out := map[string]any{"mode": *mode}
	if err := run(out); err != nil {
		out["error"] = err.Error()
		var code exec.CodeExitError
		if errors.As(err, &code) {
			out["code"] = code.Code
		}
	}
	json.NewEncoder(os.Stdout).Encode(out)
}

func run(out map[string]any) error {
	target, err := url.Parse(*address)
	if err != nil {
		return err
	}
	config := &rest.Config{Host: target.Scheme + "://" + target.Host}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	switch *mode {
	case "exec", "wsexec", "anyexec":
		return command(ctx, config, target, out)
	case "portforward", "wsportforward":
		return forward(ctx, config, target, out)
	}
	return fmt.Errorf("unknown mode %q", *mode)
}

func command(ctx context.Context, config *rest.Config, target *url.URL, out map[string]any) (err error) {
	executor, err := newExecutor(config, target)
	if err != nil {
		return err
	}
	var stdout, stderr received
	options := remotecommand.StreamOptions{Stdin: bytes.NewReader(pattern(*stdin, 0)), Stdout: &stdout, Stderr: &stderr}
	if *tty {
		options.Tty, options.Stderr = true, nil
		options.TerminalSizeQueue = &sizes{{Width: 80, Height: 24}, {Width: 132, Height: 43}}
	}
	err = executor.StreamWithContext(ctx, options)
	out["stdout"], out["stderr"] = stdout.report(), stderr.report()
	return err
}

// newExecutor returns the executor for -mode.
func newExecutor(config *rest.Config, target *url.URL) (remotecommand.Executor, error) {
	newSPDY := func() (remotecommand.Executor, error) { return remotecommand.NewSPDYExecutor(config, "POST", target) }
	newWebSocket := func() (remotecommand.Executor, error) {
		if *protocol != "" {
			return remotecommand.NewWebSocketExecutorForProtocols(config, "GET", target.String(), *protocol)
		}
		return remotecommand.NewWebSocketExecutor(config, "GET", target.String())
	}
	switch *mode {
	case "exec":
		return newSPDY()
	case "wsexec":
		return newWebSocket()
	}
	first, err := newWebSocket()
	if err != nil {
		return nil, err
	}
	second, err := newSPDY()
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(first, second, httpstream.IsUpgradeFailure)
}

func forward(ctx context.Context, config *rest.Config, target *url.URL, out map[string]any) error {
	var dialer httpstream.Dialer
	if *mode == "wsportforward" {
		tunnel, err := portforward.NewSPDYOverWebsocketDialer(target, config)
		if err != nil {
			return err
		}
		dialer = tunnel
	} else {
		transport, upgrader, err := spdy.RoundTripperFor(config)
		if err != nil {
			return err
		}
		dialer = spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", target)
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	var messages received
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", *remote)}, stop, ready, &messages, &messages)
	if err != nil {
		return err
	}
	result := make(chan error, 1)
	go func() { result <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return err
	}
	results := make([]any, *connections)
	var all sync.WaitGroup
	for i := range results {
		all.Add(1)
		go func() {
			defer all.Done()
			results[i] = echo(ports[0].Local, i)
		}()
	}
	all.Wait()
	close(stop)
	err = <-result
	out["connections"], out["said"] = results, messages.report()["text"]
	return err
}

// echo sends a pattern through a forwarded port and reports the data that is echoed back.
func echo(port uint16, seed int) map[string]any {
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(*timeout))
	go func() {
		connection.Write(pattern(*length, seed))
		connection.(*net.TCPConn).CloseWrite()
	}()
	var back received
	_, err = io.Copy(&back, connection)
	report := back.report()
	delete(report, "text")
	if err != nil {
		report["error"] = err.Error()
	}
	return report
}
