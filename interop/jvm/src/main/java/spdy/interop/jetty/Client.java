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
 * Fetches every URL at once over one SPDY/2 or SPDY/3 session of Jetty's client and prints what came as JSON.
 *
 * <pre>java spdy.interop.jetty.Client --protocol spdy/3|spdy/2 [--repeat N] [--post FILE] [--seconds N] URL...</pre>
 *
 * By ALPN over TLS; plain by prior knowledge.
 */
public final class Client {
    private Client() {}

    public static void main(String[] args) throws Exception {
        Arguments arguments = new Arguments(args, Arguments.OF_A_CLIENT);
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
        if (exchanges.origin.getScheme().equals("https")) {
            SslContextFactory ssl = Server.ssl(Tls.ofAClient(), protocol);
            ssl.start();
            client.setClientConnectionFactory(new SslClientConnectionFactory(
                    ssl, factory.getByteBufferPool(), threads, new SPDYClientConnectionFactory()));
        }
        Session session = client.connect(
                        new InetSocketAddress(exchanges.origin.getHost(), exchanges.origin.getPort()),
                        new SessionFrameListener.Adapter() {
                            @Override
                            public void onRst(Session session, RstInfo reset) {
                                Exchange exchange = (Exchange) session.getAttribute("stream " + reset.getStreamId());
                                if (exchange != null) {
                                    exchange.fail(reset);
                                }
                            }

                            @Override
                            public void onGoAway(Session session, GoAwayResultInfo goAway) {
                                exchanges.lost(goAway);
                            }

                            @Override
                            public void onFailure(Session session, Throwable failure) {
                                exchanges.lost(failure);
                            }
                        });
        for (Exchange exchange : exchanges.asked) {
            Stream stream = session.syn(
                    new SynInfo(head(exchanges, exchange, version), exchanges.body == null),
                    new Receiving(exchange, exchanges, version));
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

    /** Takes one response, asked for or pushed. */
    private static final class Receiving extends StreamFrameListener.Adapter {
        private final Exchange exchange;
        private final Exchanges exchanges;
        private final short version;

        Receiving(Exchange exchange, Exchanges exchanges, short version) {
            this.exchange = exchange;
            this.exchanges = exchanges;
            this.version = version;
        }

        @Override
        public void onReply(Stream stream, ReplyInfo reply) {
            note(reply.getHeaders(), reply.isClose());
        }

        @Override
        public void onHeaders(Stream stream, HeadersInfo headers) {
            note(headers.getHeaders(), headers.isClose());
        }

        private void note(Fields head, boolean last) {
            Fields.Field status = head.get(HTTPSPDYHeader.STATUS.name(version));
            if (status != null) {
                exchange.status(status.getValue());
            }
            if (last) {
                exchange.finish();
            }
        }

        @Override
        public StreamFrameListener onPush(Stream stream, PushInfo push) {
            Fields head = push.getHeaders();
            Exchange pushed = exchanges.pushed(
                    head.get(HTTPSPDYHeader.URI.name(version)).getValue());
            stream.getSession().setAttribute("stream " + stream.getId(), pushed);
            Receiving receiving = new Receiving(pushed, exchanges, version);
            receiving.note(head, push.isClose());
            return receiving;
        }

        @Override
        public void onData(Stream stream, DataInfo data) {
            byte[] piece = data.asBytes(true);
            exchange.add(piece, 0, piece.length);
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
