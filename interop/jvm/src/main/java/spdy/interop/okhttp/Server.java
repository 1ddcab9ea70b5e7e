package spdy.interop.okhttp;

import com.squareup.okhttp.Protocol;
import com.squareup.okhttp.internal.framed.FramedConnection;
import com.squareup.okhttp.internal.framed.FramedStream;
import com.squareup.okhttp.internal.framed.Header;
import com.squareup.okhttp.mockwebserver.Dispatcher;
import com.squareup.okhttp.mockwebserver.MockResponse;
import com.squareup.okhttp.mockwebserver.MockWebServer;
import com.squareup.okhttp.mockwebserver.RecordedRequest;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.logging.Level;
import java.util.logging.Logger;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import okio.Buffer;
import okio.BufferedSink;
import okio.Okio;
import spdy.interop.Arguments;
import spdy.interop.Folder;
import spdy.interop.Tls;

/**
 * Serves a folder over SPDY/3.1 with OkHttp's FramedConnection, over plain TCP or (with a certificate) TLS with ALPN.
 * {@code --mock yes} uses its MockWebServer instead, over TLS only.
 *
 * <pre>java spdy.interop.okhttp.Server --root DIR [--port 0] [--cert FILE --key FILE [--mock yes]]</pre>
 *
 * The first line of stdout is JSON and contains the port. POST returns the request body. It cannot push: the
 * library does not support push for SPDY.
 */
public final class Server {
    private Server() {}

    public static void main(String[] args) throws Exception {
        Arguments arguments = new Arguments(args, Arguments.SERVER_OPTIONS);
        Folder folder = new Folder(arguments.text("root"));
        int port = arguments.number("port");
        SSLSocketFactory tls = null;
        if (arguments.has("cert")) {
            tls = Tls.forServer(arguments.text("cert"), arguments.text("key")).getSocketFactory();
        }
        if (arguments.has("mock")) {
            serveMock(folder, port, tls);
        } else {
            serveFramed(folder, port, tls);
        }
    }

    private static void serveMock(Folder folder, int port, SSLSocketFactory tls) throws IOException {
        Logger.getLogger(MockWebServer.class.getName()).setLevel(Level.WARNING);
        MockWebServer server = new MockWebServer();
        server.useHttps(tls, false);
        server.setProtocols(List.of(Protocol.SPDY_3, Protocol.HTTP_1_1));
        server.setDispatcher(new Dispatcher() {
            @Override
            public MockResponse dispatch(RecordedRequest request) throws InterruptedException {
                Buffer body = request.getBody();
                if (!request.getMethod().equals("POST")) {
                    byte[] file = readFile(folder, request.getPath());
                    if (file == null) {
                        return new MockResponse().setResponseCode(404);
                    }
                    body = new Buffer().write(file);
                }
                return new MockResponse().setBody(body);
            }
        });
        server.start(InetAddress.getByName("127.0.0.1"), port);
        Folder.printReady("okhttp", server.getPort(), "spdy/3.1", true);
    }

    private static void serveFramed(Folder folder, int port, SSLSocketFactory tls) throws IOException {
        ExecutorService executor = Executors.newCachedThreadPool();
        try (ServerSocket listener = new ServerSocket(port, 50, InetAddress.getByName("127.0.0.1"))) {
            Folder.printReady("okhttp", listener.getLocalPort(), "spdy/3.1", tls != null);
            while (true) {
                Socket socket = listener.accept();
                executor.execute(() -> {
                    try {
                        serveConnection(folder, tls == null ? socket : wrapTls(socket, tls), executor);
                    } catch (IOException e) {
                        System.err.println("connection: " + e);
                    }
                });
            }
        }
    }

    private static Socket wrapTls(Socket socket, SSLSocketFactory tls) throws IOException {
        SSLSocket tlsSocket = (SSLSocket) tls.createSocket(socket, null, socket.getPort(), true);
        tlsSocket.setUseClientMode(false);
        SSLParameters parameters = tlsSocket.getSSLParameters();
        parameters.setApplicationProtocols(new String[] {Protocol.SPDY_3.toString()});
        tlsSocket.setSSLParameters(parameters);
        tlsSocket.startHandshake();
        return tlsSocket;
    }

    private static void serveConnection(Folder folder, Socket socket, ExecutorService executor) throws IOException {
        socket.setTcpNoDelay(true);
        FramedConnection connection = new FramedConnection.Builder(false)
                .socket(socket)
                .protocol(Protocol.SPDY_3)
                .listener(new FramedConnection.Listener() {
                    @Override
                    public void onStream(FramedStream stream) {
                        executor.execute(() -> respond(folder, stream));
                    }
                })
                .build();
        connection.sendConnectionPreface();
    }

    private static void respond(Folder folder, FramedStream stream) {
        try {
            String method = value(stream.getRequestHeaders(), ":method");
            String path = value(stream.getRequestHeaders(), ":path");
            String status = "200 OK";
            byte[] body;
            if (method.equals("POST")) {
                body = Okio.buffer(stream.getSource()).readByteArray();
            } else {
                body = readFile(folder, path);
            }
            if (body == null) {
                status = "404 Not Found";
                body = new byte[0];
            }
            stream.reply(
                    List.of(
                            new Header(":status", status),
                            new Header(":version", "HTTP/1.1"),
                            new Header("content-type", "application/octet-stream"),
                            new Header("content-length", Integer.toString(body.length))),
                    true);
            try (BufferedSink sink = Okio.buffer(stream.getSink())) {
                sink.write(body);
            }
        } catch (IOException e) {
            System.err.println("stream " + stream.getId() + ": " + e);
        }
    }

    private static byte[] readFile(Folder folder, String path) {
        try {
            return folder.file(path);
        } catch (IOException e) {
            System.err.println(path + ": " + e);
            return null;
        }
    }

    private static String value(List<Header> headers, String name) {
        return headers.stream()
                .filter(header -> header.name.utf8().equals(name))
                .map(header -> header.value.utf8())
                .findFirst()
                .orElse("");
    }
}
