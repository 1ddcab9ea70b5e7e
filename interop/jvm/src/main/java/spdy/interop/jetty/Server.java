package spdy.interop.jetty;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import org.eclipse.jetty.server.ConnectionFactory;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.spdy.api.ByteBufferDataInfo;
import org.eclipse.jetty.spdy.api.DataInfo;
import org.eclipse.jetty.spdy.api.HeadersInfo;
import org.eclipse.jetty.spdy.api.PushInfo;
import org.eclipse.jetty.spdy.api.ReplyInfo;
import org.eclipse.jetty.spdy.api.SPDY;
import org.eclipse.jetty.spdy.api.Stream;
import org.eclipse.jetty.spdy.api.StreamFrameListener;
import org.eclipse.jetty.spdy.api.SynInfo;
import org.eclipse.jetty.spdy.api.server.ServerSessionFrameListener;
import org.eclipse.jetty.spdy.http.HTTPSPDYHeader;
import org.eclipse.jetty.spdy.server.SPDYServerConnectionFactory;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.Fields;
import org.eclipse.jetty.util.Promise;
import org.eclipse.jetty.util.log.Log;
import org.eclipse.jetty.util.log.StdErrLog;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import spdy.interop.Arguments;
import spdy.interop.Folder;
import spdy.interop.Tls;

/**
 * Serves a folder over SPDY/2 or SPDY/3 with Jetty's streams, over plain TCP or (with a certificate) TLS with ALPN.
 *
 * <pre>java spdy.interop.jetty.Server --root DIR --protocol spdy/3|spdy/2 [--port 0] [--cert FILE --key FILE]</pre>
 *
 * The first line of stdout is JSON and contains the port. POST returns the request body; GET /a?push=b,c pushes
 * /b and /c with /a.
 *
 * <p>Jetty's HTTP layer above these streams is not used: it loses bytes of large request bodies, even with Jetty's
 * client.
 */
public final class Server {
    private static final int MAX_DATA_BYTES = 8 << 20;

    private Server() {}

    public static void main(String[] args) throws Exception {
        Arguments arguments = new Arguments(args, Arguments.SERVER_OPTIONS);
        String protocol = arguments.text("protocol");
        short version = version(protocol);
        Folder folder = new Folder(arguments.text("root"));
        Log.setLog(new StdErrLog()); // warnings and errors only
        ((StdErrLog) Log.getRootLogger()).setLevel(StdErrLog.LEVEL_WARN);

        org.eclipse.jetty.server.Server server = new org.eclipse.jetty.server.Server();
        RequestListener requestListener = new RequestListener(folder, version);
        List<ConnectionFactory> factories = new ArrayList<>();
        boolean tls = arguments.has("cert");
        if (tls) {
            SSLContext context = Tls.forServer(arguments.text("cert"), arguments.text("key"));
            factories.add(new SslConnectionFactory(ssl(context, protocol), protocol));
        }
        factories.add(new SPDYServerConnectionFactory(version, requestListener));
        ServerConnector connector = new ServerConnector(server, factories.toArray(ConnectionFactory[]::new));
        connector.setHost("127.0.0.1");
        connector.setPort(arguments.number("port"));
        server.addConnector(connector);
        server.start();
        Folder.printReady("jetty", connector.getLocalPort(), protocol, tls);
    }

    /**
     * TLS with the ALPN of the JDK. Jetty's ALPN was a class on the boot class path of Java 8 and chose the protocol
     * inside TLS; here the protocol is known in advance.
     */
    static SslContextFactory ssl(SSLContext context, String protocol) {
        SslContextFactory ssl = new SslContextFactory() {
            @Override
            public void customize(SSLEngine engine) {
                super.customize(engine);
                Tls.setAlpn(protocol, engine);
            }
        };
        ssl.setSslContext(context);
        return ssl;
    }

    /** Sends a body in chunks: Jetty does not split data in SPDY/2, and a frame holds less than 16 MiB. */
    static void send(Stream stream, byte[] body) {
        send(stream, ByteBuffer.wrap(body));
    }

    private static void send(Stream stream, ByteBuffer rest) {
        ByteBuffer chunk = rest.slice();
        chunk.limit(Math.min(chunk.remaining(), MAX_DATA_BYTES));
        rest.position(rest.position() + chunk.remaining());
        boolean last = !rest.hasRemaining();
        stream.data(new ByteBufferDataInfo(60, TimeUnit.SECONDS, chunk, last), new Callback.Adapter() {
            @Override
            public void succeeded() {
                if (!last) {
                    send(stream, rest);
                }
            }
        });
    }

    /** Jetty's version number for an ALPN protocol name. */
    static short version(String protocol) {
        return switch (protocol) {
            case "spdy/2" -> SPDY.V2;
            case "spdy/3" -> SPDY.V3;
            default -> throw new IllegalArgumentException("jetty does not support " + protocol);
        };
    }

    private static final class RequestListener extends ServerSessionFrameListener.Adapter {
        private final Folder folder;
        private final short version;

        RequestListener(Folder folder, short version) {
            this.folder = folder;
            this.version = version;
        }

        @Override
        public StreamFrameListener onSyn(Stream stream, SynInfo syn) {
            Fields request = syn.getHeaders();
            String target = value(request, HTTPSPDYHeader.URI);
            if (!value(request, HTTPSPDYHeader.METHOD).equals("POST")) {
                Folder.pushPaths(target).forEach(path -> push(stream, request, path));
                respond(stream, file(target));
                return null;
            }
            ByteArrayOutputStream received = new ByteArrayOutputStream();
            return new StreamFrameListener.Adapter() {
                @Override
                public void onData(Stream stream, DataInfo data) {
                    received.writeBytes(data.asBytes(true));
                    if (data.isClose()) {
                        respond(stream, received.toByteArray());
                    }
                }
            };
        }

        private void respond(Stream stream, byte[] body) {
            byte[] content = body == null ? new byte[0] : body;
            Fields head = status(body == null ? "404 Not Found" : "200 OK", content);
            stream.reply(new ReplyInfo(head, false), new Callback.Adapter());
            send(stream, content);
        }

        /** Sends the URL in SYN_STREAM and the status in HEADERS. */
        private void push(Stream stream, Fields request, String path) {
            byte[] body = file(path);
            Fields promise = new Fields();
            String scheme = value(request, HTTPSPDYHeader.SCHEME);
            String host = value(request, HTTPSPDYHeader.HOST);
            // In SPDY/2 a push has an absolute URL.
            String url = version == SPDY.V2 ? scheme + "://" + host + path : path;
            promise.put(HTTPSPDYHeader.METHOD.name(version), "GET");
            promise.put(HTTPSPDYHeader.URI.name(version), url);
            promise.put(HTTPSPDYHeader.VERSION.name(version), "HTTP/1.1");
            promise.put(HTTPSPDYHeader.SCHEME.name(version), scheme);
            promise.put(HTTPSPDYHeader.HOST.name(version), host);
            stream.push(new PushInfo(promise, false), new Promise.Adapter<Stream>() {
                @Override
                public void succeeded(Stream pushed) {
                    pushed.headers(new HeadersInfo(status("200 OK", body), false), new Callback.Adapter());
                    send(pushed, body);
                }

                @Override
                public void failed(Throwable reason) {
                    System.err.println("push of " + path + ": " + reason);
                }
            });
        }

        private Fields status(String text, byte[] body) {
            Fields head = new Fields();
            head.put(HTTPSPDYHeader.STATUS.name(version), text);
            head.put(HTTPSPDYHeader.VERSION.name(version), "HTTP/1.1");
            head.put("content-type", "application/octet-stream");
            head.put("content-length", Integer.toString(body.length));
            return head;
        }

        private String value(Fields request, HTTPSPDYHeader name) {
            Fields.Field field = request.get(name.name(version));
            return field == null ? "" : field.getValue();
        }

        private byte[] file(String target) {
            try {
                return folder.file(target);
            } catch (IOException e) {
                System.err.println(target + ": " + e);
                return null;
            }
        }
    }
}
