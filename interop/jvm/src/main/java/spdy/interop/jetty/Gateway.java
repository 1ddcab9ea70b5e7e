package spdy.interop.jetty;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.net.ssl.SSLContext;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.spdy.api.DataInfo;
import org.eclipse.jetty.spdy.api.ReplyInfo;
import org.eclipse.jetty.spdy.api.Stream;
import org.eclipse.jetty.spdy.api.StreamFrameListener;
import org.eclipse.jetty.spdy.api.SynInfo;
import org.eclipse.jetty.spdy.api.server.ServerSessionFrameListener;
import org.eclipse.jetty.spdy.http.HTTPSPDYHeader;
import org.eclipse.jetty.spdy.server.SPDYServerConnectionFactory;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.Fields;
import org.eclipse.jetty.util.log.Log;
import org.eclipse.jetty.util.log.StdErrLog;
import spdy.interop.Arguments;
import spdy.interop.Tls;
import spdy.interop.Upstream;

/**
 * Forwards every request to an HTTP/1.1 server with Jetty's streams, over SPDY/2 or SPDY/3 in TLS with ALPN.
 *
 * <pre>java spdy.interop.jetty.Gateway --port 443,8443 --protocol spdy/3|spdy/2 --upstream 127.0.0.1:10000 --cert FILE --key FILE</pre>
 *
 * It listens on the ports of every address. {@code spdy lab} loads pages from it (crates/spdy-lab/src/live/gateway).
 */
public final class Gateway {
    private Gateway() {}

    public static void main(String[] args) throws Exception {
        Map<String, String> defaults =
                Map.of("port", "443", "protocol", "spdy/3", "upstream", "", "cert", "", "key", "");
        Arguments arguments = new Arguments(args, defaults);
        String protocol = arguments.text("protocol");
        short version = Server.version(protocol);
        Log.setLog(new StdErrLog()); // warnings and errors only
        ((StdErrLog) Log.getRootLogger()).setLevel(StdErrLog.LEVEL_WARN);

        org.eclipse.jetty.server.Server server = new org.eclipse.jetty.server.Server();
        SSLContext context = Tls.forServer(arguments.text("cert"), arguments.text("key"), "TLSv1.2,TLSv1.3");
        RequestListener listener = new RequestListener(new Upstream(arguments.text("upstream")), version);
        for (String port : arguments.text("port").split(",")) {
            ServerConnector connector = new ServerConnector(
                    server,
                    new SslConnectionFactory(Server.ssl(context, protocol), protocol),
                    new SPDYServerConnectionFactory(version, listener));
            connector.setHost("0.0.0.0");
            connector.setPort(Integer.parseInt(port));
            server.addConnector(connector);
        }
        server.start();
    }

    private static final class RequestListener extends ServerSessionFrameListener.Adapter {
        private final ExecutorService threads = Executors.newCachedThreadPool();
        private final Upstream upstream;
        private final short version;

        RequestListener(Upstream upstream, short version) {
            this.upstream = upstream;
            this.version = version;
        }

        @Override
        public StreamFrameListener onSyn(Stream stream, SynInfo syn) {
            Fields request = syn.getHeaders();
            if (syn.isClose()) {
                threads.execute(() -> forward(stream, request, new byte[0]));
                return null;
            }
            ByteArrayOutputStream received = new ByteArrayOutputStream();
            return new StreamFrameListener.Adapter() {
                @Override
                public void onData(Stream stream, DataInfo data) {
                    received.writeBytes(data.asBytes(true));
                    if (data.isClose()) {
                        threads.execute(() -> forward(stream, request, received.toByteArray()));
                    }
                }
            };
        }

        private void forward(Stream stream, Fields request, byte[] body) {
            List<Map.Entry<String, String>> headers = new ArrayList<>();
            headers.add(Map.entry("host", value(request, HTTPSPDYHeader.HOST)));
            for (Fields.Field field : request) {
                if (HTTPSPDYHeader.from(version, field.getName()) == null) {
                    field.getValues().forEach(value -> headers.add(Map.entry(field.getName(), value)));
                }
            }
            String target = value(request, HTTPSPDYHeader.URI);
            Upstream.Response response;
            try {
                response = upstream.send(value(request, HTTPSPDYHeader.METHOD), target, headers, body);
            } catch (IOException e) {
                System.err.println("upstream: " + target + ": " + e);
                response = new Upstream.Response("502 Bad Gateway", List.of(), new byte[0]);
            }
            Fields head = new Fields();
            head.put(HTTPSPDYHeader.STATUS.name(version), response.status());
            head.put(HTTPSPDYHeader.VERSION.name(version), "HTTP/1.1");
            response.headers().forEach(header -> head.add(header.getKey(), header.getValue()));
            boolean empty = response.body().length == 0;
            stream.reply(new ReplyInfo(head, empty), new Callback.Adapter());
            if (!empty) {
                Server.send(stream, response.body());
            }
        }

        private String value(Fields request, HTTPSPDYHeader name) {
            Fields.Field field = request.get(name.name(version));
            return field == null ? "" : field.getValue();
        }
    }
}
