package spdy.interop;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
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
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.spdy.SpdyHttpHeaders;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import java.util.Map;

/**
 * Forwards every request to an HTTP/1.1 server with Netty, over SPDY/3.1 in TLS with ALPN.
 *
 * <pre>java spdy.interop.Gateway --port 443,8443 --upstream 127.0.0.1:10000 --cert FILE --key FILE</pre>
 *
 * It listens on the ports of every address. {@code spdy lab} loads pages from it (crates/spdy-lab/src/live/gateway). One thread does
 * everything, like the server that it is compared with. The key is Ed25519, as PEM.
 */
public final class Gateway {
    /** Headers of one connection, which a gateway does not forward. */
    private static final List<String> CONNECTION_HEADERS =
            List.of("connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade");

    private Gateway() {}

    public static void main(String[] args) throws Exception {
        Map<String, String> defaults =
                Map.of("port", "443", "protocol", Pipeline.PROTOCOL, "upstream", "", "cert", "", "key", "");
        Options options = new Options(args, defaults);
        if (!options.text("protocol").equals(Pipeline.PROTOCOL)) {
            throw new IllegalArgumentException("netty does not support " + options.text("protocol"));
        }
        SslContext tls = SslContextBuilder.forServer(key(options.text("key")), chain(options.text("cert")))
                .sslProvider(SslProvider.JDK)
                .applicationProtocolConfig(Pipeline.alpn())
                .build();
        NioEventLoopGroup loop = new NioEventLoopGroup(1);
        Upstream upstream = new Upstream(loop, options.text("upstream"));
        ServerBootstrap bootstrap = new ServerBootstrap()
                .group(loop)
                .channel(NioServerSocketChannel.class)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .childHandler(new Pipeline(tls, true, () -> new RequestHandler(upstream)));
        for (String port : options.text("port").split(",")) {
            bootstrap.bind("0.0.0.0", Integer.parseInt(port)).sync();
        }
    }

    private static PrivateKey key(String file) throws Exception {
        String pem = Files.readString(Path.of(file)).replaceAll("-----.*-----|\\s", "");
        return KeyFactory.getInstance("Ed25519")
                .generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem)));
    }

    private static X509Certificate[] chain(String file) throws Exception {
        return CertificateFactory.getInstance("X.509")
                .generateCertificates(new ByteArrayInputStream(Files.readAllBytes(Path.of(file))))
                .toArray(X509Certificate[]::new);
    }

    /** Copies the headers of a message, without those of its connection and of its SPDY stream. */
    private static void forward(HttpHeaders from, HttpHeaders to) {
        for (Map.Entry<String, String> header : from) {
            String name = header.getKey().toLowerCase();
            if (!CONNECTION_HEADERS.contains(name) && !name.startsWith("x-spdy-")) {
                to.add(name, header.getValue());
            }
        }
    }

    private static final class RequestHandler extends SimpleChannelInboundHandler<FullHttpRequest> {
        private final Upstream upstream;

        RequestHandler(Upstream upstream) {
            this.upstream = upstream;
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
            int stream = request.headers().getInt(SpdyHttpHeaders.Names.STREAM_ID);
            ByteBuf body = request.content().retain();
            FullHttpRequest forwarded =
                    new DefaultFullHttpRequest(HttpVersion.HTTP_1_1, request.method(), request.uri(), body);
            forward(request.headers(), forwarded.headers());
            if (body.isReadable()) {
                forwarded.headers().set(HttpHeaderNames.CONTENT_LENGTH, body.readableBytes());
            }
            upstream.send(forwarded, answer -> respond(context, stream, answer));
        }

        /** Sends {@code answer}, or 502 if it is null. */
        private static void respond(ChannelHandlerContext context, int stream, FullHttpResponse answer) {
            HttpResponseStatus status = answer == null ? HttpResponseStatus.BAD_GATEWAY : answer.status();
            HttpResponse response = new DefaultHttpResponse(HttpVersion.HTTP_1_1, status);
            ByteBuf body = Unpooled.EMPTY_BUFFER;
            if (answer != null) {
                forward(answer.headers(), response.headers());
                body = answer.content().retain();
            }
            response.headers().set(SpdyHttpHeaders.Names.STREAM_ID, stream);
            context.write(response);
            while (body.readableBytes() > Server.MAX_CHUNK_BYTES) {
                context.write(new DefaultHttpContent(body.readRetainedSlice(Server.MAX_CHUNK_BYTES)));
            }
            context.writeAndFlush(new DefaultLastHttpContent(body));
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            System.err.println("connection: " + cause);
            context.close();
        }
    }
}
