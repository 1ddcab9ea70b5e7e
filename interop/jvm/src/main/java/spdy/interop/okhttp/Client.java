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
 * Fetches every URL over one SPDY/3.1 session and prints what came as JSON.
 *
 * <pre>java spdy.interop.okhttp.Client [--repeat N] [--post FILE] [--seconds N] URL...</pre>
 *
 * https: is OkHttpClient and ALPN, where the first URL is asked for alone: the client does not wait for a
 * connection that another request is making, and would open one for each. http: is its FramedConnection, since
 * OkHttpClient speaks SPDY only when ALPN says so; all URLs at once. It refuses what is pushed.
 */
public final class Client {
    private Client() {}

    public static void main(String[] args) throws Exception {
        Exchanges exchanges = new Exchanges("okhttp", new Arguments(args, Arguments.OF_A_CLIENT));
        if (exchanges.secure()) {
            secure(exchanges);
        } else {
            plain(exchanges);
        }
        exchanges.report();
    }

    private static void secure(Exchanges exchanges) throws Exception {
        OkHttpClient client = new OkHttpClient();
        client.setProtocols(List.of(Protocol.SPDY_3, Protocol.HTTP_1_1));
        client.setSslSocketFactory(Tls.ofAClient().getSocketFactory());
        client.setHostnameVerifier((host, session) -> true);
        client.setReadTimeout(0, TimeUnit.SECONDS);
        client.getDispatcher().setMaxRequests(exchanges.asked.size());
        client.getDispatcher().setMaxRequestsPerHost(exchanges.asked.size());
        Exchange first = exchanges.asked.get(0);
        try {
            take(first, client.newCall(request(exchanges, first)).execute());
        } catch (IOException e) {
            first.fail(e);
        }
        for (Exchange exchange : exchanges.asked.subList(1, exchanges.asked.size())) {
            client.newCall(request(exchanges, exchange)).enqueue(new Callback() {
                @Override
                public void onFailure(Request request, IOException e) {
                    exchange.fail(e);
                }

                @Override
                public void onResponse(Response response) {
                    try {
                        take(exchange, response);
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

    private static void take(Exchange exchange, Response response) throws IOException {
        if (response.protocol() != Protocol.SPDY_3) {
            exchange.fail("spoke " + response.protocol());
            return;
        }
        exchange.status(Integer.toString(response.code()));
        readOut(exchange, response.body().byteStream());
    }

    private static void plain(Exchanges exchanges) throws IOException {
        Socket socket = new Socket(exchanges.origin.getHost(), exchanges.origin.getPort());
        socket.setTcpNoDelay(true);
        FramedConnection connection = new FramedConnection.Builder(true)
                .socket(socket)
                .protocol(Protocol.SPDY_3)
                .listener(new FramedConnection.Listener() {
                    @Override
                    public void onStream(FramedStream stream) throws IOException {
                        Exchange push = exchanges.pushed("/unknown");
                        push.fail("refused");
                        stream.close(ErrorCode.REFUSED_STREAM);
                    }
                })
                .build();
        connection.sendConnectionPreface();
        ExecutorService asking = Executors.newCachedThreadPool();
        for (Exchange exchange : exchanges.asked) {
            asking.execute(() -> {
                try {
                    ask(exchanges, connection, exchange);
                } catch (IOException e) {
                    exchange.fail(e);
                }
            });
        }
    }

    private static void ask(Exchanges exchanges, FramedConnection connection, Exchange exchange) throws IOException {
        List<Header> head = new ArrayList<>(List.of(
                new Header(":method", exchanges.method()),
                new Header(":path", exchange.target()),
                new Header(":version", "HTTP/1.1"),
                new Header(":host", exchange.url.getAuthority()),
                new Header(":scheme", exchange.url.getScheme()),
                new Header("user-agent", "spdy-interop-okhttp")));
        boolean posts = exchanges.body != null;
        if (posts) {
            head.add(new Header("content-length", Integer.toString(exchanges.body.length)));
        }
        FramedStream stream = connection.newStream(head, posts, true);
        if (posts) {
            try (BufferedSink sink = Okio.buffer(stream.getSink())) {
                sink.write(exchanges.body);
            }
        }
        for (Header header : stream.getResponseHeaders()) {
            if (header.name.utf8().equals(":status")) {
                exchange.status(header.value.utf8());
            }
        }
        readOut(exchange, Okio.buffer(stream.getSource()).inputStream());
    }

    private static void readOut(Exchange exchange, InputStream body) throws IOException {
        byte[] piece = new byte[16 << 10];
        for (int read = body.read(piece); read >= 0; read = body.read(piece)) {
            exchange.add(piece, 0, read);
        }
        exchange.finish();
    }
}
