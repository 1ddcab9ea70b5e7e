package spdy.interop.okhttp;

import com.squareup.okhttp.Callback;
import com.squareup.okhttp.MediaType;
import com.squareup.okhttp.OkHttpClient;
import com.squareup.okhttp.Protocol;
import com.squareup.okhttp.Request;
import com.squareup.okhttp.RequestBody;
import com.squareup.okhttp.Response;
import com.squareup.okhttp.internal.framed.ErrorCode;
import com.squareup.okhttp.internal.framed.FramedConnection;
import com.squareup.okhttp.internal.framed.FramedStream;
import com.squareup.okhttp.internal.framed.Header;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import okio.BufferedSink;
import okio.Okio;
import spdy.interop.Arguments;
import spdy.interop.Exchanges;
import spdy.interop.Exchanges.Exchange;
import spdy.interop.Tls;

/**
 * Fetches every URL over one SPDY/3.1 session and prints the responses as JSON.
 *
 * <pre>java spdy.interop.okhttp.Client [--repeat N] [--post FILE] [--seconds N] URL...</pre>
 *
 * For https: it uses OkHttpClient with ALPN and completes the first request alone: the client does not wait for a
 * connection that another request is opening, so parallel first requests would open one connection each. For http: it
 * uses FramedConnection, because OkHttpClient uses SPDY only after ALPN, and sends all requests at once. It refuses
 * pushes.
 */
public final class Client {
    private Client() {}

    public static void main(String[] args) throws Exception {
        Exchanges exchanges = new Exchanges("okhttp", new Arguments(args, Arguments.CLIENT_OPTIONS));
        if (exchanges.isSecure()) {
            fetchSecure(exchanges);
        } else {
            fetchPlain(exchanges);
        }
        exchanges.report();
    }

    private static void fetchSecure(Exchanges exchanges) throws Exception {
        OkHttpClient client = new OkHttpClient();
        client.setProtocols(List.of(Protocol.SPDY_3, Protocol.HTTP_1_1));
        client.setSslSocketFactory(Tls.forClient().getSocketFactory());
        client.setHostnameVerifier((host, session) -> true);
        client.setReadTimeout(0, TimeUnit.SECONDS);
        client.getDispatcher().setMaxRequests(exchanges.requests.size());
        client.getDispatcher().setMaxRequestsPerHost(exchanges.requests.size());
        Exchange first = exchanges.requests.get(0);
        try {
            readResponse(first, client.newCall(request(exchanges, first)).execute());
        } catch (IOException e) {
            first.fail(e);
        }
        for (Exchange exchange : exchanges.requests.subList(1, exchanges.requests.size())) {
            client.newCall(request(exchanges, exchange)).enqueue(new Callback() {
                @Override
                public void onFailure(Request request, IOException e) {
                    exchange.fail(e);
                }

                @Override
                public void onResponse(Response response) {
                    try {
                        readResponse(exchange, response);
                    } catch (IOException e) {
                        exchange.fail(e);
                    }
                }
            });
        }
    }

    private static Request request(Exchanges exchanges, Exchange exchange) {
        Request.Builder request = new Request.Builder().url(exchange.url.toString());
        if (exchanges.body != null) {
            request.post(RequestBody.create(MediaType.parse("application/octet-stream"), exchanges.body));
        }
        return request.build();
    }

    private static void readResponse(Exchange exchange, Response response) throws IOException {
        if (response.protocol() != Protocol.SPDY_3) {
            exchange.fail("unexpected protocol " + response.protocol());
            return;
        }
        exchange.setStatus(Integer.toString(response.code()));
        readBody(exchange, response.body().byteStream());
    }

    private static void fetchPlain(Exchanges exchanges) throws IOException {
        Socket socket = new Socket(exchanges.origin.getHost(), exchanges.origin.getPort());
        socket.setTcpNoDelay(true);
        FramedConnection connection = new FramedConnection.Builder(true)
                .socket(socket)
                .protocol(Protocol.SPDY_3)
                .listener(new FramedConnection.Listener() {
                    @Override
                    public void onStream(FramedStream stream) throws IOException {
                        Exchange push = exchanges.addPush("/unknown");
                        push.fail("refused");
                        stream.close(ErrorCode.REFUSED_STREAM);
                    }
                })
                .build();
        connection.sendConnectionPreface();
        ExecutorService executor = Executors.newCachedThreadPool();
        for (Exchange exchange : exchanges.requests) {
            executor.execute(() -> {
                try {
                    sendRequest(exchanges, connection, exchange);
                } catch (IOException e) {
                    exchange.fail(e);
                }
            });
        }
    }

    private static void sendRequest(Exchanges exchanges, FramedConnection connection, Exchange exchange)
            throws IOException {
        List<Header> head = new ArrayList<>(List.of(
                new Header(":method", exchanges.method()),
                new Header(":path", exchange.target()),
                new Header(":version", "HTTP/1.1"),
                new Header(":host", exchange.url.getAuthority()),
                new Header(":scheme", exchange.url.getScheme()),
                new Header("user-agent", "spdy-interop-okhttp")));
        boolean hasBody = exchanges.body != null;
        if (hasBody) {
            head.add(new Header("content-length", Integer.toString(exchanges.body.length)));
        }
        FramedStream stream = connection.newStream(head, hasBody, true);
        if (hasBody) {
            try (BufferedSink sink = Okio.buffer(stream.getSink())) {
                sink.write(exchanges.body);
            }
        }
        for (Header header : stream.getResponseHeaders()) {
            if (header.name.utf8().equals(":status")) {
                exchange.setStatus(header.value.utf8());
            }
        }
        readBody(exchange, Okio.buffer(stream.getSource()).inputStream());
    }

    private static void readBody(Exchange exchange, InputStream body) throws IOException {
        byte[] chunk = new byte[16 << 10];
        for (int read = body.read(chunk); read >= 0; read = body.read(chunk)) {
            exchange.addBody(chunk, 0, read);
        }
        exchange.finish();
    }
}
