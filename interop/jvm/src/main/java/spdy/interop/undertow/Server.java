package spdy.interop.undertow;

import io.undertow.UndertowOptions;
import io.undertow.connector.ByteBufferPool;
import io.undertow.protocols.ssl.UndertowXnioSsl;
import io.undertow.server.DefaultByteBufferPool;
import io.undertow.server.HttpHandler;
import io.undertow.server.HttpServerExchange;
import io.undertow.server.protocol.http.AlpnOpenListener;
import io.undertow.server.protocol.spdy.SpdyOpenListener;
import io.undertow.server.protocol.spdy.SpdyPlainOpenListener;
import io.undertow.util.Headers;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import javax.net.ssl.SSLContext;
import org.xnio.ChannelListeners;
import org.xnio.OptionMap;
import org.xnio.Options;
import org.xnio.StreamConnection;
import org.xnio.Xnio;
import org.xnio.XnioWorker;
import org.xnio.channels.AcceptingChannel;
import spdy.interop.Arguments;
import spdy.interop.Folder;
import spdy.interop.Tls;

/**
 * Serves a folder over SPDY/3.1 with Undertow, over plain TCP or (with a certificate) TLS with ALPN.
 *
 * <pre>java spdy.interop.undertow.Server --root DIR [--port 0] [--cert FILE --key FILE]</pre>
 *
 * The first line of stdout is JSON and contains the port. POST returns the request body. Undertow cannot push in SPDY.
 */
public final class Server {
    /** Size of a buffer in bytes. */
    private static final int BUFFER_BYTES = 16 << 10;

    private Server() {}

    /** Buffers: direct ones for frames, heap buffers for header blocks, which must be in heap memory. */
    static ByteBufferPool buffers(boolean direct) {
        return new DefaultByteBufferPool(direct, BUFFER_BYTES);
    }

    static XnioWorker worker() throws IOException {
        return Xnio.getInstance()
                .createWorker(OptionMap.builder()
                        .set(Options.WORKER_IO_THREADS, 2)
                        .set(Options.TCP_NODELAY, true)
                        .getMap());
    }

    public static void main(String[] args) throws Exception {
        Arguments arguments = new Arguments(args, Arguments.SERVER_OPTIONS);
        Folder folder = new Folder(arguments.text("root"));
        InetSocketAddress address =
                new InetSocketAddress(InetAddress.getByName("127.0.0.1"), arguments.number("port"));
        OptionMap enabled = OptionMap.create(UndertowOptions.ENABLE_SPDY, true);
        OptionMap options = OptionMap.create(Options.TCP_NODELAY, true, Options.REUSE_ADDRESSES, true);
        boolean tls = arguments.has("cert");
        AcceptingChannel<? extends StreamConnection> listener;
        if (tls) {
            SSLContext context = Tls.forServer(arguments.text("cert"), arguments.text("key"));
            SpdyOpenListener spdyListener = new SpdyOpenListener(buffers(true), buffers(false), enabled);
            AlpnOpenListener openListener =
                    new AlpnOpenListener(buffers(true), enabled, SpdyOpenListener.SPDY_3_1, spdyListener);
            openListener.setRootHandler(new RequestHandler(folder));
            listener = new UndertowXnioSsl(Xnio.getInstance(), OptionMap.EMPTY, context)
                    .createSslConnectionServer(
                            worker(), address, ChannelListeners.openListenerAdapter(openListener), options);
        } else {
            SpdyPlainOpenListener openListener = new SpdyPlainOpenListener(buffers(true), buffers(false), enabled);
            openListener.setRootHandler(new RequestHandler(folder));
            listener = worker().createStreamConnectionServer(
                    address, ChannelListeners.openListenerAdapter(openListener), options);
        }
        listener.resumeAccepts();
        Folder.printReady("undertow", listener.getLocalAddress(InetSocketAddress.class).getPort(), "spdy/3.1", tls);
    }

    private static final class RequestHandler implements HttpHandler {
        private final Folder folder;

        RequestHandler(Folder folder) {
            this.folder = folder;
        }

        @Override
        public void handleRequest(HttpServerExchange exchange) throws IOException {
            if (exchange.getRequestMethod().toString().equals("POST")) {
                exchange.getRequestReceiver().receiveFullBytes(RequestHandler::respond);
                return;
            }
            byte[] body = folder.file(exchange.getRequestPath());
            if (body == null) {
                exchange.setStatusCode(404);
                body = new byte[0];
            }
            respond(exchange, body);
        }

        private static void respond(HttpServerExchange exchange, byte[] body) {
            exchange.getResponseHeaders().put(Headers.CONTENT_TYPE, "application/octet-stream");
            exchange.getResponseHeaders().put(Headers.CONTENT_LENGTH, body.length);
            exchange.getResponseSender().send(ByteBuffer.wrap(body));
        }
    }
}
