package spdy.interop;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpClientCodec;
import io.netty.handler.codec.http.HttpObjectAggregator;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;

/** Requests to one HTTP/1.1 server over persistent connections. All calls are on the one thread of the event loop. */
final class Upstream {
    private static final int MAX_BODY_BYTES = 64 << 20;

    private final Bootstrap bootstrap;
    /** Connections without a request. */
    private final Deque<Channel> idle = new ArrayDeque<>();

    /** {@code address} is HOST:PORT. */
    Upstream(EventLoopGroup loop, String address) {
        String[] parts = address.split(":");
        bootstrap = new Bootstrap()
                .group(loop)
                .channel(NioSocketChannel.class)
                .option(ChannelOption.TCP_NODELAY, true)
                .remoteAddress(parts[0], Integer.parseInt(parts[1]))
                .handler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel channel) {
                        channel.pipeline()
                                .addLast(new HttpClientCodec())
                                .addLast(new HttpObjectAggregator(MAX_BODY_BYTES))
                                .addLast(new Exchange());
                    }
                });
    }

    /** Sends {@code request}; {@code receiver} gets the response, or null if there is none. */
    void send(FullHttpRequest request, Consumer<FullHttpResponse> receiver) {
        Channel channel = idle.pollLast();
        if (channel != null) {
            send(channel, request, receiver);
            return;
        }
        bootstrap.connect().addListener((io.netty.channel.ChannelFuture connected) -> {
            if (connected.isSuccess()) {
                send(connected.channel(), request, receiver);
            } else {
                System.err.println("upstream: " + connected.cause());
                request.release();
                receiver.accept(null);
            }
        });
    }

    private static void send(Channel channel, FullHttpRequest request, Consumer<FullHttpResponse> receiver) {
        channel.pipeline().get(Exchange.class).receiver = receiver;
        channel.writeAndFlush(request);
    }

    /** The one request of a connection that has no response yet. */
    private final class Exchange extends SimpleChannelInboundHandler<FullHttpResponse> {
        private Consumer<FullHttpResponse> receiver;

        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpResponse response) {
            Consumer<FullHttpResponse> receiver = this.receiver;
            this.receiver = null;
            idle.addLast(context.channel());
            if (receiver != null) {
                receiver.accept(response);
            }
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            idle.remove(context.channel());
            if (receiver != null) {
                receiver.accept(null);
                receiver = null;
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            System.err.println("upstream: " + cause);
            context.close();
        }
    }
}
