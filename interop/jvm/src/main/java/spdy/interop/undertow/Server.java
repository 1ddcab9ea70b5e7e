package spdy.interop.undertow;

import io.undertow.UndertowOptions;
import io.undertow.connector.ByteBufferPool;
import io.undertow.server.DefaultByteBufferPool;
import io.undertow.server.HttpHandler;
import io.undertow.server.HttpServerExchange;
import io.undertow.server.protocol.spdy.SpdyPlainOpenListener;
import io.undertow.util.Headers;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import org.xnio.ChannelListeners;
import org.xnio.OptionMap;
import org.xnio.Options;
import org.xnio.StreamConnection;
import org.xnio.Xnio;
import org.xnio.XnioWorker;
import org.xnio.channels.AcceptingChannel;
import spdy.interop.Arguments;
import spdy.interop.Folder;

/**
 * A folder served over SPDY/3.1 by Undertow, plain.
 *
 * <pre>java spdy.interop.undertow.Server --root DIR [--port 0]</pre>
 *
 * The first line of stdout is JSON and tells the port. POST is answered with what came. It cannot push in SPDY.
 */
public final class Server {
    /** Bytes of a buffer; header blocks must be in heap memory. */
    private static final int BUFFER = 16 << 10;

    private Server() {}

    /** Buffers for frames, or with {@code direct} false for header blocks. */
    static ByteBufferPool buffers(boolean direct) {
        return new DefaultByteBufferPool(direct, BUFFER);
    }

    static XnioWorker worker() throws IOException {
        return Xnio.getInstance()
                .createWorker(OptionMap.builder()
                        .set(Options.WORKER_IO_THREADS, 2)
                        .set(Options.TCP_NODELAY, true)
                        .getMap());
    }

    public static void main(String[] args) throws Exception {
        Arguments arguments = new Arguments(args, Arguments.OF_A_SERVER);
        Folder folder = new Folder(arguments.text("root"));
        SpdyPlainOpenListener opening = new SpdyPlainOpenListener(
                buffers(true), buffers(false), OptionMap.create(UndertowOptions.ENABLE_SPDY, true));
        opening.setRootHandler(new Answers(folder));
        AcceptingChannel<StreamConnection> listener = worker().createStreamConnectionServer(
                new InetSocketAddress(InetAddress.getByName("127.0.0.1"), arguments.number("port")),
                ChannelListeners.openListenerAdapter(opening),
                OptionMap.create(Options.TCP_NODELAY, true, Options.REUSE_ADDRESSES, true));
        listener.resumeAccepts();
        Folder.ready("undertow", listener.getLocalAddress(InetSocketAddress.class).getPort(), "spdy/3.1", false);
    }

    private static final class Answers implements HttpHandler {
        private final Folder folder;

        Answers(Folder folder) {
            this.folder = folder;
        }

        @Override
        public void handleRequest(HttpServerExchange exchange) throws IOException {
            if (exchange.getRequestMethod().toString().equals("POST")) {
                exchange.getRequestReceiver().receiveFullBytes(Answers::answer);
                return;
            }
            byte[] body = folder.file(exchange.getRequestPath());
            if (body == null) {
                exchange.setStatusCode(404);
                body = new byte[0];
            }
            answer(exchange, body);
        }

        private static void answer(HttpServerExchange exchange, byte[] body) {
            exchange.getResponseHeaders().put(Headers.CONTENT_TYPE, "application/octet-stream");
            exchange.getResponseHeaders().put(Headers.CONTENT_LENGTH, body.length);
            exchange.getResponseSender().send(ByteBuffer.wrap(body));
        }
    }
}
