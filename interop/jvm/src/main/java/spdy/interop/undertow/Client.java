package spdy.interop.undertow;

import io.undertow.client.ClientCallback;
import io.undertow.client.ClientConnection;
import io.undertow.client.ClientExchange;
import io.undertow.client.ClientRequest;
import io.undertow.client.UndertowClient;
import io.undertow.protocols.ssl.UndertowXnioSsl;
import io.undertow.util.Headers;
import io.undertow.util.HttpString;
import io.undertow.util.Methods;
import io.undertow.util.Protocols;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import org.xnio.ChannelListeners;
import org.xnio.OptionMap;
import org.xnio.Options;
import org.xnio.Xnio;
import org.xnio.channels.StreamSinkChannel;
import org.xnio.channels.StreamSourceChannel;
import spdy.interop.Arguments;
import spdy.interop.Exchanges;
import spdy.interop.Exchanges.Exchange;
import spdy.interop.Tls;

/**
 * Fetches every URL at once over one SPDY/3.1 session of Undertow's client and prints the responses as JSON.
 *
 * <pre>java spdy.interop.undertow.Client [--repeat N] [--post FILE] [--seconds N] URL...</pre>
 *
 * An https: URL uses TLS with ALPN, an http: URL plain TCP with prior knowledge. Pushes are ignored.
 */
public final class Client {
    private Client() {}

    public static void main(String[] args) throws Exception {
        Exchanges exchanges = new Exchanges("undertow", new Arguments(args, Arguments.CLIENT_OPTIONS));
        URI origin = exchanges.origin;
        boolean secure = exchanges.isSecure();
        String scheme = secure ? "spdy" : "spdy-plain";
        ClientConnection session = UndertowClient.getInstance()
                .connect(
                        new URI(scheme, null, origin.getHost(), origin.getPort(), "/", null, null),
                        Server.worker(),
                        secure ? new UndertowXnioSsl(Xnio.getInstance(), OptionMap.EMPTY, Tls.forClient()) : null,
                        Server.buffers(true),
                        // Without this, a WINDOW_UPDATE waits until the previous one is acknowledged.
                        OptionMap.create(Options.TCP_NODELAY, true))
                .get();
        session.getCloseSetter().set(closed -> exchanges.sessionFailed("the connection was closed"));
        // Channels may only be used on the I/O thread of their connection.
        session.getIoThread()
                .execute(() -> exchanges.requests.forEach(exchange -> sendRequest(exchanges, session, exchange)));
        exchanges.report();
    }

    private static void sendRequest(Exchanges exchanges, ClientConnection session, Exchange exchange) {
        ClientRequest request = new ClientRequest()
                .setMethod(exchanges.body == null ? Methods.GET : Methods.POST)
                .setProtocol(Protocols.HTTP_1_1)
                .setPath(exchange.target());
        request.getRequestHeaders()
                .put(Headers.HOST, exchange.url.getAuthority())
                .put(new HttpString(":scheme"), exchange.url.getScheme());
        if (exchanges.body != null) {
            request.getRequestHeaders().put(Headers.CONTENT_LENGTH, exchanges.body.length);
        }
        session.sendRequest(request, new Callback<>(exchange) {
            @Override
            public void completed(ClientExchange sent) {
                sent.setResponseListener(new Callback<>(exchange) {
                    @Override
                    public void completed(ClientExchange responded) {
                        exchange.setStatus(Integer.toString(responded.getResponse().getResponseCode()));
                        receiveBody(exchange, responded.getResponseChannel());
                    }
                });
                if (exchanges.body != null) {
                    sendBody(exchange, ByteBuffer.wrap(exchanges.body), sent.getRequestChannel());
                }
            }
        });
    }

    private static void sendBody(Exchange exchange, ByteBuffer body, StreamSinkChannel channel) {
        try {
            while (body.hasRemaining()) {
                if (channel.write(body) == 0) {
                    channel.getWriteSetter().set(writable -> sendBody(exchange, body, writable));
                    channel.resumeWrites();
                    return;
                }
            }
            // If a frame is still queued, Undertow sets FIN on it and then sends another empty frame with FIN.
            channel.suspendWrites();
            channel.shutdownWrites();
            if (!channel.flush()) {
                channel.getWriteSetter()
                        .set(ChannelListeners.flushingChannelListener(null, (failing, e) -> exchange.fail(e)));
                channel.resumeWrites();
            }
        } catch (IOException e) {
            exchange.fail(e);
        }
    }

    private static void receiveBody(Exchange exchange, StreamSourceChannel channel) {
        ByteBuffer chunk = ByteBuffer.allocate(16 << 10);
        try {
            while (true) {
                chunk.clear();
                int read = channel.read(chunk);
                if (read == 0) {
                    channel.getReadSetter().set(readable -> receiveBody(exchange, readable));
                    channel.resumeReads();
                    return;
                }
                if (read < 0) {
                    exchange.finish();
                    return;
                }
                exchange.addBody(chunk.array(), 0, read);
            }
        } catch (IOException e) {
            exchange.fail(e);
        }
    }

    /** A callback that fails the exchange on an error. */
    private abstract static class Callback<T> implements ClientCallback<T> {
        private final Exchange exchange;

        Callback(Exchange exchange) {
            this.exchange = exchange;
        }

        @Override
        public void failed(IOException e) {
            exchange.fail(e);
        }
    }
}
