package spdy.interop.jetty;

import java.net.InetSocketAddress;
import org.eclipse.jetty.io.ssl.SslClientConnectionFactory;
import org.eclipse.jetty.spdy.api.DataInfo;
import org.eclipse.jetty.spdy.api.GoAwayResultInfo;
import org.eclipse.jetty.spdy.api.HeadersInfo;
import org.eclipse.jetty.spdy.api.PushInfo;
import org.eclipse.jetty.spdy.api.ReplyInfo;
import org.eclipse.jetty.spdy.api.RstInfo;
import org.eclipse.jetty.spdy.api.Session;
import org.eclipse.jetty.spdy.api.SessionFrameListener;
import org.eclipse.jetty.spdy.api.Stream;
import org.eclipse.jetty.spdy.api.StreamFrameListener;
import org.eclipse.jetty.spdy.api.SynInfo;
import org.eclipse.jetty.spdy.client.SPDYClient;
import org.eclipse.jetty.spdy.client.SPDYClientConnectionFactory;
import org.eclipse.jetty.spdy.http.HTTPSPDYHeader;
import org.eclipse.jetty.util.Fields;
import org.eclipse.jetty.util.log.Log;
import org.eclipse.jetty.util.log.StdErrLog;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import spdy.interop.Arguments;
import spdy.interop.Exchanges;
import spdy.interop.Exchanges.Exchange;
import spdy.interop.Tls;

/**
 * Fetches every URL at once over one SPDY/2 or SPDY/3 session of Jetty's client and prints the responses as JSON.
 *
 * <pre>java spdy.interop.jetty.Client --protocol spdy/3|spdy/2 [--repeat N] [--post FILE] [--seconds N] URL...</pre>
 *
 * An https: URL uses TLS with ALPN, an http: URL plain TCP with prior knowledge.
 */
public final class Client {
    private Client() {}

    public static void main(String[] args) throws Exception {
        Arguments arguments = new Arguments(args, Arguments.CLIENT_OPTIONS);
        String protocol = arguments.text("protocol");
        short version = Server.version(protocol);
        Exchanges exchanges = new Exchanges("jetty", arguments);
        Log.setLog(new StdErrLog());
        ((StdErrLog) Log.getRootLogger()).setLevel(StdErrLog.LEVEL_WARN);
        QueuedThreadPool threads = new QueuedThreadPool();
        threads.setDaemon(true);
        SPDYClient.Factory factory = new SPDYClient.Factory(threads);
        factory.start();
        SPDYClient client = factory.newSPDYClient(version);
        if (exchanges.isSecure()) {
            SslContextFactory ssl = Server.ssl(Tls.forClient(), protocol);
            ssl.start();
            client.setClientConnectionFactory(new SslClientConnectionFactory(
                    ssl, factory.getByteBufferPool(), threads, new SPDYClientConnectionFactory()));
        }
        Session session = client.connect(
                        new InetSocketAddress(exchanges.origin.getHost(), exchanges.origin.getPort()),
                        new SessionFrameListener.Adapter() {
                            @Override
                            public void onRst(Session session, RstInfo rst) {
                                Exchange exchange = (Exchange) session.getAttribute("stream " + rst.getStreamId());
                                if (exchange != null) {
                                    exchange.fail(rst);
                                }
                            }

                            @Override
                            public void onGoAway(Session session, GoAwayResultInfo goAway) {
                                exchanges.sessionFailed(goAway);
                            }

                            @Override
                            public void onFailure(Session session, Throwable failure) {
                                exchanges.sessionFailed(failure);
                            }
                        });
        for (Exchange exchange : exchanges.requests) {
            Stream stream = session.syn(
                    new SynInfo(head(exchanges, exchange, version), exchanges.body == null),
                    new ResponseListener(exchange, exchanges, version));
            session.setAttribute("stream " + stream.getId(), exchange);
            if (exchanges.body != null) {
                Server.send(stream, exchanges.body);
            }
        }
        exchanges.report();
    }

    private static Fields head(Exchanges exchanges, Exchange exchange, short version) {
        Fields head = new Fields();
        head.put(HTTPSPDYHeader.METHOD.name(version), exchanges.method());
        head.put(HTTPSPDYHeader.URI.name(version), exchange.target());
        head.put(HTTPSPDYHeader.VERSION.name(version), "HTTP/1.1");
        head.put(HTTPSPDYHeader.SCHEME.name(version), exchange.url.getScheme());
        head.put(HTTPSPDYHeader.HOST.name(version), exchange.url.getAuthority());
        head.put("user-agent", "spdy-interop-jetty");
        if (exchanges.body != null) {
            head.put("content-length", Integer.toString(exchanges.body.length));
        }
        return head;
    }

    /** Receives one response, requested or pushed. */
    private static final class ResponseListener extends StreamFrameListener.Adapter {
        private final Exchange exchange;
        private final Exchanges exchanges;
        private final short version;

        ResponseListener(Exchange exchange, Exchanges exchanges, short version) {
            this.exchange = exchange;
            this.exchanges = exchanges;
            this.version = version;
        }

        @Override
        public void onReply(Stream stream, ReplyInfo reply) {
            handleHead(reply.getHeaders(), reply.isClose());
        }

        @Override
        public void onHeaders(Stream stream, HeadersInfo headers) {
            handleHead(headers.getHeaders(), headers.isClose());
        }

        private void handleHead(Fields head, boolean last) {
            Fields.Field status = head.get(HTTPSPDYHeader.STATUS.name(version));
            if (status != null) {
                exchange.setStatus(status.getValue());
            }
            if (last) {
                exchange.finish();
            }
        }

        @Override
        public StreamFrameListener onPush(Stream stream, PushInfo push) {
            Fields head = push.getHeaders();
            Exchange pushed = exchanges.addPush(
                    head.get(HTTPSPDYHeader.URI.name(version)).getValue());
            stream.getSession().setAttribute("stream " + stream.getId(), pushed);
            ResponseListener listener = new ResponseListener(pushed, exchanges, version);
            listener.handleHead(head, push.isClose());
            return listener;
        }

        @Override
        public void onData(Stream stream, DataInfo data) {
            byte[] chunk = data.asBytes(true);
            exchange.addBody(chunk, 0, chunk.length);
            if (data.isClose()) {
                exchange.finish();
            }
        }

        @Override
        public void onFailure(Stream stream, Throwable failure) {
            exchange.fail(failure);
        }
    }
}
