package spdy.interop;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOption;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpRequest;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.DefaultLastHttpContent;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.QueryStringDecoder;
import io.netty.handler.codec.spdy.SpdyHttpHeaders;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import java.io.File;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Serves a folder over SPDY/3.1 with Netty, over plain TCP or (with a certificate) TLS with ALPN.
 *
 * <pre>java spdy.interop.Server --root DIR [--port 0] [--cert FILE --key FILE]</pre>
 *
 * The first line of stdout is JSON and contains the port. POST returns the request body; GET /a?push=b,c pushes
 * /b and /c with /a.
 */
public final class Server {
    /** The encoder writes each chunk as one DATA frame, and a frame holds less than 16 MiB. */
    static final int MAX_CHUNK_BYTES = 8 << 20;

    private Server() {}

    public static void main(String[] args) throws Exception {
        Options options = new Options(args, Map.of("root", ".", "port", "0", "cert", "", "key", ""));
        Folder folder = new Folder(Path.of(options.text("root")).toRealPath());
        SslContext tls = null;
        boolean secure = options.has("cert");
        if (secure) {
            tls = SslContextBuilder.forServer(new File(options.text("cert")), new File(options.text("key")))
                    .applicationProtocolConfig(Pipeline.alpn())
                    .build();
        }
        Channel listener = new ServerBootstrap()
                .group(new NioEventLoopGroup(2))
                .channel(NioServerSocketChannel.class)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .childHandler(new Pipeline(tls, true, () -> new RequestHandler(folder, secure)))
                .bind("127.0.0.1", options.number("port"))
                .sync()
                .channel();
        int port = ((InetSocketAddress) listener.localAddress()).getPort();
        System.out.printf(
                "{\"peer\":\"netty\",\"port\":%d,\"protocol\":\"%s\",\"tls\":%b}%n", port, Pipeline.PROTOCOL, secure);
        listener.closeFuture().sync();
    }

    /** Files by URI. Each is read once, so that measurements do not include the disk. */
    private static final class Folder {
        private final Path root;
        private final Map<String, byte[]> cache = new ConcurrentHashMap<>();

        Folder(Path root) {
            this.root = root;
        }

        /** Contents of the file, or null if there is none. */
        byte[] file(String uri) throws IOException {
            byte[] bytes = cache.get(uri);
            if (bytes == null) {
                Path file = root.resolve("." + new QueryStringDecoder(uri).path()).normalize();
                if (file.startsWith(root) && Files.isRegularFile(file)) {
                    bytes = Files.readAllBytes(file);
                    cache.put(uri, bytes);
                }
            }
            return bytes;
        }
    }

    private static final class RequestHandler extends SimpleChannelInboundHandler<FullHttpRequest> {
        private final Folder folder;
        /** A server's streams are even. */
        private int nextPush = 2;
        /** Scheme of all requests: the decoder drops the one in the request. */
        private final String scheme;

        RequestHandler(Folder folder, boolean secure) {
            this.folder = folder;
            scheme = secure ? "https" : "http";
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) throws IOException {
            HttpResponseStatus status = HttpResponseStatus.OK;
            ByteBuf body;
            if (request.method().equals(HttpMethod.POST)) {
                body = request.content().retain();
            } else {
                byte[] file = folder.file(request.uri());
                if (file == null) {
                    status = HttpResponseStatus.NOT_FOUND;
                    file = "no such file\n".getBytes(StandardCharsets.US_ASCII);
                }
                body = Unpooled.wrappedBuffer(file);
            }
            int stream = request.headers().getInt(SpdyHttpHeaders.Names.STREAM_ID);
            if (request.uri().indexOf('?') >= 0) {
                for (String names : new QueryStringDecoder(request.uri()).parameters().getOrDefault("push", List.of())) {
                    for (String name : names.split(",")) {
                        push(context, request, stream, name);
                    }
                }
            }
            send(context, stream, status, body);
        }

        /** Sends the pushed request as SYN_STREAM, the response as HEADERS and DATA. */
        private void push(ChannelHandlerContext context, FullHttpRequest parent, int stream, String name)
                throws IOException {
            HttpRequest promise = new DefaultFullHttpRequest(HttpVersion.HTTP_1_1, HttpMethod.GET, "/" + name);
            promise.headers()
                    .set(HttpHeaderNames.HOST, parent.headers().get(HttpHeaderNames.HOST))
                    .set(SpdyHttpHeaders.Names.SCHEME, scheme)
                    .set(SpdyHttpHeaders.Names.ASSOCIATED_TO_STREAM_ID, stream)
                    .set(SpdyHttpHeaders.Names.STREAM_ID, nextPush);
            context.write(promise);
            send(context, nextPush, HttpResponseStatus.OK, Unpooled.wrappedBuffer(folder.file("/" + name)));
            nextPush += 2;
        }

        private static void send(ChannelHandlerContext context, int stream, HttpResponseStatus status, ByteBuf body) {
            HttpResponse response = new DefaultHttpResponse(HttpVersion.HTTP_1_1, status);
            response.headers()
                    .set(HttpHeaderNames.CONTENT_TYPE, "application/octet-stream")
                    .set(HttpHeaderNames.CONTENT_LENGTH, body.readableBytes())
                    .set(SpdyHttpHeaders.Names.STREAM_ID, stream);
            context.write(response);
            while (body.readableBytes() > MAX_CHUNK_BYTES) {
                context.write(new DefaultHttpContent(body.readRetainedSlice(MAX_CHUNK_BYTES)));
            }
            context.write(new DefaultLastHttpContent(body));
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext context) {
            context.flush();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            System.err.println("connection: " + cause);
            context.close();
        }
    }
}
