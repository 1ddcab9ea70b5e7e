// Server for exec, attach and port-forward: the kubelet's streaming library with a fake container runtime, and the
// API server's proxies, which can be used in front of it or of any other server.
//
//	server       prints {"kubelet": PORT, "front": PORT}, and serves until its stdin ends
//
// The kubelet's port serves one-time URLs. The front port serves:
//
//	/new/exec?cmd=cat[&tty=1], /new/attach, /new/portforward[?port=80]     a one-time URL as plain text
//	/api/exec?cmd=cat[&tty=1]         creates a one-time URL and forwards the request to it (UpgradeAwareHandler)
//	/proxy?to=URL                     forwards SPDY and WebSocket (UpgradeAwareHandler)
//	/ws/exec?to=URL[&tty=1]           WebSocket v5.channel.k8s.io to SPDY (StreamTranslator)
//	/ws/portforward?to=URL            SPDY inside WebSocket to SPDY (TunnelingHandler)
//
// Commands: cat, fail N, size (prints the first two terminal sizes). Attach runs cat.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"k8s.io/apimachinery/pkg/util/proxy"
	apiproxy "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/tools/remotecommand"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubelet/pkg/cri/streaming"
	"k8s.io/utils/exec"
)

type runtime struct{}

func (runtime) Exec(_ context.Context, _ string, cmd []string, in io.Reader, out, errs io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize) error {
	switch cmd[0] {
	case "cat":
		_, err := io.Copy(out, in)
		return err
	case "fail":
		code, err := strconv.Atoi(cmd[1])
		if err != nil {
			return err
		}
		fmt.Fprintln(errs, "failing as asked")
		return exec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: code}
	case "size":
		for range 2 {
			size := <-resize
			fmt.Fprintf(out, "%dx%d\n", size.Width, size.Height)
		}
		return nil
	}
	return fmt.Errorf("no command %q", cmd[0])
}

func (r runtime) Attach(ctx context.Context, id string, in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	return r.Exec(ctx, id, []string{"cat"}, in, out, errs, tty, resize)
}

func (runtime) PortForward(_ context.Context, _ string, port int32, stream io.ReadWriteCloser) error {
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer connection.Close()
	go func() {
		io.Copy(connection, stream)
		connection.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, connection)
	return err
}

type errorResponder struct{}

func (errorResponder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// listen opens a listener on a free loopback port.
func listen() (net.Listener, int) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return listener, listener.Addr().(*net.TCPAddr).Port
}

func main() {
	kubelet, kubeletPort := listen()
	front, frontPort := listen()
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: kubelet.Addr().String(), Path: "/"}
	server, err := streaming.NewServer(config, runtime{})
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.Serve(kubelet, server)) }()

	writeURL := func(w http.ResponseWriter, url string, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, url)
	}
	newExec := func(r *http.Request) (string, error) {
		query := r.URL.Query()
		tty := query.Has("tty")
		response, err := server.GetExec(&cri.ExecRequest{ContainerId: "c", Cmd: query["cmd"], Tty: tty, Stdin: true, Stdout: true, Stderr: !tty})
		return response.GetUrl(), err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/new/exec", func(w http.ResponseWriter, r *http.Request) {
		url, err := newExec(r)
		writeURL(w, url, err)
	})
	mux.HandleFunc("/new/attach", func(w http.ResponseWriter, r *http.Request) {
		response, err := server.GetAttach(&cri.AttachRequest{ContainerId: "c", Stdin: true, Stdout: true, Stderr: true})
		writeURL(w, response.GetUrl(), err)
	})
	mux.HandleFunc("/new/portforward", func(w http.ResponseWriter, r *http.Request) {
		var ports []int32
		for _, text := range r.URL.Query()["port"] {
			port, err := strconv.ParseUint(text, 10, 16)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			ports = append(ports, int32(port))
		}
		response, err := server.GetPortForward(&cri.PortForwardRequest{PodSandboxId: "p", Port: ports})
		writeURL(w, response.GetUrl(), err)
	})
	targetOf := func(r *http.Request) (*url.URL, error) {
		target, err := url.Parse(r.URL.Query().Get("to"))
		if err == nil && target.Host == "" {
			err = errors.New("to= is not an absolute URL")
		}
		return target, err
	}
	forwardTo := func(w http.ResponseWriter, r *http.Request, target *url.URL, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		handler := proxy.NewUpgradeAwareHandler(target, nil, false, true, errorResponder{})
		handler.UseLocationHost = true
		handler.ServeHTTP(w, r)
	}
	forward := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target, err := targetOf(r)
		forwardTo(w, r, target, err)
	})
	mux.Handle("/proxy", forward)
	mux.HandleFunc("/api/exec", func(w http.ResponseWriter, r *http.Request) {
		text, err := newExec(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		target, err := url.Parse(text)
		forwardTo(w, r, target, err)
	})
	mux.Handle("/ws/portforward", apiproxy.NewTunnelingHandler(forward))
	mux.HandleFunc("/ws/exec", func(w http.ResponseWriter, r *http.Request) {
		target, err := targetOf(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		tty := r.URL.Query().Has("tty")
		options := apiproxy.Options{Stdin: true, Stdout: true, Stderr: !tty, Tty: tty}
		apiproxy.NewStreamTranslatorHandler(target, nil, 0, options).ServeHTTP(w, r)
	})
	go func() { log.Fatal(http.Serve(front, mux)) }()

	json.NewEncoder(os.Stdout).Encode(map[string]int{"kubelet": kubeletPort, "front": frontPort})
	io.Copy(io.Discard, os.Stdin)
}
