package spdy.interop;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOption;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpRequest;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpRequest;
import io.netty.handler.codec.http.DefaultLastHttpContent;
import io.netty.handler.codec.http.FullHttpMessage;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.spdy.SpdyHttpHeaders;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.util.InsecureTrustManagerFactory;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Fetches every URL at once over one SPDY/3.1 session and prints the responses as JSON.
 *
 * <pre>java spdy.interop.Client [--repeat N] [--post FILE] [--seconds N] [--push-seconds N] URL...</pre>
 *
 * http: uses SPDY by prior knowledge, https: SPDY by ALPN; the certificate is not verified. The exit code is 0 if
 * every response is complete. After the responses it waits for each push to end, at most {@code --push-seconds}.
 */
public final class Client {
    private Client() {}

    private static final class Exchange {
        final URI url;
        volatile int status;
        volatile int bytes;
        volatile String sha256;
        volatile String error;
        final CountDownLatch finished = new CountDownLatch(1);

        Exchange(URI url) {
            this.url = url;
        }

        String json() {
            return String.format(
                    "{\"url\":%s,\"status\":%d,\"bytes\":%d,\"sha256\":%s,\"error\":%s}",
                    quoted(url.toString()), status, bytes, quoted(sha256), quoted(error));
        }
    }

    public static void main(String[] args) throws Exception {
        Options options = new Options(args, Map.of("repeat", "1", "post", "", "seconds", "60", "push-seconds", "20"));
        List<Exchange> exchanges = new ArrayList<>();
        for (int round = 0; round < options.number("repeat"); round++) {
            options.positional.forEach(url -> exchanges.add(new Exchange(URI.create(url))));
        }
        if (exchanges.isEmpty()) {
            System.err.println("expected URLs of one origin");
            System.exit(2);
        }
        byte[] body = options.has("post") ? Files.readAllBytes(Path.of(options.text("post"))) : null;
        URI first = exchanges.get(0).url;
        boolean secure = first.getScheme().equals("https");
        SslContext tls = null;
        if (secure) {
            tls = SslContextBuilder.forClient()
                    .trustManager(InsecureTrustManagerFactory.INSTANCE)
                    .applicationProtocolConfig(Pipeline.alpn())
                    .build();
        }

        List<String> errors = Collections.synchronizedList(new ArrayList<>());
        Map<Integer, Exchange> pushed = new ConcurrentSkipListMap<>();
        CountDownLatch pending = new CountDownLatch(exchanges.size());
        int port = first.getPort() > 0 ? first.getPort() : secure ? 443 : 80;
        Channel channel = new Bootstrap()
                .group(new NioEventLoopGroup(1))
                .channel(NioSocketChannel.class)
                .option(ChannelOption.TCP_NODELAY, true)
                .handler(new Pipeline(tls, false, () -> new RequestSender(exchanges, body, pending, errors, pushed)))
                .connect(first.getHost(), port)
                .sync()
                .channel();
        channel.closeFuture().addListener(closed -> {
            if (pending.getCount() > 0) {
                errors.add("the connection ended with " + pending.getCount() + " streams open");
            }
            while (pending.getCount() > 0) {
                pending.countDown();
            }
        });
        if (!pending.await(options.number("seconds"), TimeUnit.SECONDS)) {
            errors.add("not done after " + options.text("seconds") + " s");
        }
        for (Exchange push : pushed.values()) {
            push.finished.await(options.number("push-seconds"), TimeUnit.SECONDS);
        }
        System.out.println(report(exchanges, pushed.values(), errors));
        boolean complete = errors.isEmpty() && exchanges.stream().allMatch(exchange -> exchange.sha256 != null);
        System.exit(complete ? 0 : 1);
    }

    private static String report(List<Exchange> exchanges, Collection<Exchange> pushed, List<String> errors) {
        String responses = String.join(",", exchanges.stream().map(Exchange::json).toList());
        String pushes = String.join(",", pushed.stream().map(Exchange::json).toList());
        synchronized (errors) {
            String errorList = String.join(",", errors.stream().map(Client::quoted).toList());
            return String.format(
                    "{\"peer\":\"netty\",\"protocol\":\"%s\",\"responses\":[%s],\"pushed\":[%s],\"errors\":[%s]}",
                    Pipeline.PROTOCOL, responses, pushes, errorList);
        }
    }

    private static String quoted(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    /** Sends the requests. It is the last handler of the pipeline, so it is added when the session is ready. */
    private static final class RequestSender extends SimpleChannelInboundHandler<FullHttpMessage> {
        private final List<Exchange> exchanges;
        private final byte[] body;
        private final CountDownLatch pending;
        private final List<String> errors;
        private final Map<Integer, Exchange> pushed;
        private boolean requestsSent;

        RequestSender(
                List<Exchange> exchanges,
                byte[] body,
                CountDownLatch pending,
                List<String> errors,
                Map<Integer, Exchange> pushed) {
            this.exchanges = exchanges;
            this.body = body;
            this.pending = pending;
            this.errors = errors;
            this.pushed = pushed;
        }

        @Override
        public void handlerAdded(ChannelHandlerContext context) {
            // With TLS the channel is active long before ALPN completes, so channelActive is not called.
            if (context.channel().isActive()) {
                sendRequests(context);
            }
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            sendRequests(context);
        }

        private void sendRequests(ChannelHandlerContext context) {
            if (requestsSent) {
                return;
            }
            requestsSent = true;
            for (int index = 0; index < exchanges.size(); index++) {
                sendRequest(context, exchanges.get(index).url, streamOf(index));
            }
            context.flush();
        }

        /** A client's streams are odd, from 1. */
        private static int streamOf(int index) {
            return 2 * index + 1;
        }

        private void sendRequest(ChannelHandlerContext context, URI url, int stream) {
            String target = url.getRawPath() + (url.getRawQuery() == null ? "" : "?" + url.getRawQuery());
            HttpMethod method = body == null ? HttpMethod.GET : HttpMethod.POST;
            HttpRequest request = body == null
                    ? new DefaultFullHttpRequest(HttpVersion.HTTP_1_1, method, target)
                    : new DefaultHttpRequest(HttpVersion.HTTP_1_1, method, target);
            request.headers()
                    .set(HttpHeaderNames.HOST, url.getAuthority())
                    .set(HttpHeaderNames.ACCEPT, "*/*")
                    .set(HttpHeaderNames.USER_AGENT, "spdy-interop-netty")
                    .set(SpdyHttpHeaders.Names.SCHEME, url.getScheme())
                    .set(SpdyHttpHeaders.Names.STREAM_ID, stream)
                    .set(SpdyHttpHeaders.Names.PRIORITY, stream % 8);
            if (body == null) {
                context.write(request);
                return;
            }
            request.headers().set(HttpHeaderNames.CONTENT_LENGTH, body.length);
            context.write(request);
            ByteBuf rest = Unpooled.wrappedBuffer(body);
            while (rest.readableBytes() > Server.MAX_CHUNK_BYTES) {
                context.write(new DefaultHttpContent(rest.readRetainedSlice(Server.MAX_CHUNK_BYTES)));
            }
            context.write(new DefaultLastHttpContent(rest));
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpMessage message) throws Exception {
            int stream = message.headers().getInt(SpdyHttpHeaders.Names.STREAM_ID);
            if (message instanceof FullHttpRequest promise) {
                pushed.put(stream, new Exchange(URI.create(promise.uri())));
                return;
            }
            FullHttpResponse response = (FullHttpResponse) message;
            boolean isRequested = stream % 2 == 1;
            Exchange exchange = isRequested ? exchanges.get((stream - 1) / 2) : pushed.get(stream);
            byte[] content = ByteBufUtil.getBytes(response.content());
            exchange.status = response.status().code();
            exchange.bytes = content.length;
            exchange.sha256 = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
            if (response.decoderResult().isFailure()) {
                exchange.error = response.decoderResult().cause().toString();
            }
            exchange.finished.countDown();
            if (isRequested) {
                pending.countDown();
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            errors.add(cause.toString());
            context.close();
        }
    }
}
