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
 * Fetches every URL at once over one SPDY/3.1 session of Undertow's client and prints what came as JSON.
 *
 * <pre>java spdy.interop.undertow.Client [--repeat N] [--post FILE] [--seconds N] URL...</pre>
 *
 * By ALPN over TLS; plain by prior knowledge. It takes no notice of what is pushed.
 */
public final class Client {
    private Client() {}

    public static void main(String[] args) throws Exception {
        Exchanges exchanges = new Exchanges("undertow", new Arguments(args, Arguments.OF_A_CLIENT));
        URI origin = exchanges.origin;
        boolean secure = origin.getScheme().equals("https");
        String scheme = secure ? "spdy" : "spdy-plain";
        ClientConnection session = UndertowClient.getInstance()
                .connect(
                        new URI(scheme, null, origin.getHost(), origin.getPort(), "/", null, null),
                        Server.worker(),
                        secure ? new UndertowXnioSsl(Xnio.getInstance(), OptionMap.EMPTY, Tls.ofAClient()) : null,
                        Server.buffers(true),
                        // Else a WINDOW_UPDATE waits for the acknowledgement of the one before.
                        OptionMap.create(Options.TCP_NODELAY, true))
                .get();
        session.getCloseSetter().set(closed -> exchanges.lost("the connection was closed"));
        // Its channels belong to the thread of their connection.
        session.getIoThread().execute(() -> exchanges.asked.forEach(exchange -> ask(exchanges, session, exchange)));
        exchanges.report();
    }

    private static void ask(Exchanges exchanges, ClientConnection session, Exchange exchange) {
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
                    public void completed(ClientExchange answered) {
                        exchange.status(Integer.toString(answered.getResponse().getResponseCode()));
                        receive(exchange, answered.getResponseChannel());
                    }
                });
                if (exchanges.body != null) {
                    send(exchange, ByteBuffer.wrap(exchanges.body), sent.getRequestChannel());
                }
            }
        });
    }

    private static void send(Exchange exchange, ByteBuffer body, StreamSinkChannel channel) {
        try {
            while (body.hasRemaining()) {
                if (channel.write(body) == 0) {
                    channel.getWriteSetter().set(writable -> send(exchange, body, writable));
                    channel.resumeWrites();
                    return;
                }
            }
            // With a frame still queued it puts FIN on that one, and sends another empty one with FIN after it.
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

    private static void receive(Exchange exchange, StreamSourceChannel channel) {
        ByteBuffer piece = ByteBuffer.allocate(16 << 10);
        try {
            while (true) {
                piece.clear();
                int read = channel.read(piece);
                if (read == 0) {
                    channel.getReadSetter().set(readable -> receive(exchange, readable));
                    channel.resumeReads();
                    return;
                }
                if (read < 0) {
                    exchange.finish();
                    return;
                }
                exchange.add(piece.array(), 0, read);
            }
        } catch (IOException e) {
            exchange.fail(e);
        }
    }

    /** Fails the exchange where the other half of a callback is of no interest. */
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
