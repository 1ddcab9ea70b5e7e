package spdy.interop;

import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.spdy.SpdyFrameCodec;
import io.netty.handler.codec.spdy.SpdyHttpDecoder;
import io.netty.handler.codec.spdy.SpdyHttpEncoder;
import io.netty.handler.codec.spdy.SpdySessionHandler;
import io.netty.handler.codec.spdy.SpdyVersion;
import io.netty.handler.ssl.ApplicationProtocolConfig;
import io.netty.handler.ssl.ApplicationProtocolConfig.Protocol;
import io.netty.handler.ssl.ApplicationProtocolConfig.SelectedListenerFailureBehavior;
import io.netty.handler.ssl.ApplicationProtocolConfig.SelectorFailureBehavior;
import io.netty.handler.ssl.ApplicationProtocolNegotiationHandler;
import io.netty.handler.ssl.SslContext;
import java.util.function.Supplier;

/** Sets up SPDY/3.1 on a channel: frames, session and HTTP messages, with TLS if there is a context for it. */
final class Pipeline extends ChannelInitializer<SocketChannel> {
    static final String PROTOCOL = "spdy/3.1";
    /** The largest message that is aggregated; the tests send 20 MB. */
    private static final int MAX_MESSAGE_BYTES = 64 << 20;

    private final SslContext tls;
    private final boolean server;
    private final Supplier<ChannelHandler> lastHandler;

    Pipeline(SslContext tls, boolean server, Supplier<ChannelHandler> lastHandler) {
        this.tls = tls;
        this.server = server;
        this.lastHandler = lastHandler;
    }

    static ApplicationProtocolConfig alpn() {
        return new ApplicationProtocolConfig(
                Protocol.ALPN, SelectorFailureBehavior.NO_ADVERTISE, SelectedListenerFailureBehavior.ACCEPT, PROTOCOL);
    }

    @Override
    protected void initChannel(SocketChannel channel) {
        if (tls == null) {
            addSpdyHandlers(channel.pipeline());
            return;
        }
        channel.pipeline().addLast(tls.newHandler(channel.alloc()));
        channel.pipeline().addLast(new ApplicationProtocolNegotiationHandler("nothing") {
            @Override
            protected void configurePipeline(ChannelHandlerContext context, String negotiated) {
                if (!negotiated.equals(PROTOCOL)) {
                    throw new IllegalStateException("negotiated " + negotiated + ", expected " + PROTOCOL);
                }
                addSpdyHandlers(context.pipeline());
            }
        });
    }

    private void addSpdyHandlers(ChannelPipeline pipeline) {
        SpdyVersion version = SpdyVersion.SPDY_3_1;
        pipeline.addLast(new SpdyFrameCodec(version));
        pipeline.addLast(new SpdySessionHandler(version, server));
        pipeline.addLast(new SpdyHttpEncoder(version));
        pipeline.addLast(new SpdyHttpDecoder(version, MAX_MESSAGE_BYTES));
        pipeline.addLast(lastHandler.get());
    }
}
