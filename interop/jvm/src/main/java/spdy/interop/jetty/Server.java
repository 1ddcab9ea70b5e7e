package spdy.interop.jetty;

import java.io.IOException;
import java.io.InputStream;
import java.util.LinkedHashSet;
import java.util.Set;
import javax.servlet.ServletException;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.AbstractHandler;
import org.eclipse.jetty.spdy.api.SPDY;
import org.eclipse.jetty.spdy.api.Stream;
import org.eclipse.jetty.spdy.http.HTTPSPDYHeader;
import org.eclipse.jetty.spdy.server.http.HTTPSPDYServerConnectionFactory;
import org.eclipse.jetty.spdy.server.http.PushStrategy;
import org.eclipse.jetty.util.Fields;
import org.eclipse.jetty.util.log.Log;
import org.eclipse.jetty.util.log.StdErrLog;
import spdy.interop.Arguments;
import spdy.interop.Folder;

/**
 * A folder served over SPDY/2 or SPDY/3 by Jetty's HTTP over SPDY, plain.
 *
 * <pre>java spdy.interop.jetty.Server --root DIR --protocol spdy/3|spdy/2 [--port 0]</pre>
 *
 * The first line of stdout is JSON and tells the port. POST is answered with what came; GET /a?push=b,c pushes
 * /b and /c beside /a.
 */
public final class Server {
    private Server() {}

    public static void main(String[] args) throws Exception {
        Arguments arguments = new Arguments(args, Arguments.OF_A_SERVER);
        String protocol = arguments.text("protocol");
        short version = version(protocol);
        Folder folder = new Folder(arguments.text("root"));
        Log.setLog(new StdErrLog()); // says what goes wrong, and no more
        ((StdErrLog) Log.getRootLogger()).setLevel(StdErrLog.LEVEL_WARN);

        PushStrategy asked = (stream, request, response) -> pushes(stream, request);
        org.eclipse.jetty.server.Server server = new org.eclipse.jetty.server.Server();
        ServerConnector connector = new ServerConnector(
                server, new HTTPSPDYServerConnectionFactory(version, new HttpConfiguration(), asked));
        connector.setHost("127.0.0.1");
        connector.setPort(arguments.number("port"));
        server.addConnector(connector);
        server.setHandler(new Answers(folder));
        server.start();
        Folder.ready("jetty", connector.getLocalPort(), protocol, false);
    }

    /** The version that Jetty knows under the name of ALPN. */
    static short version(String protocol) {
        return switch (protocol) {
            case "spdy/2" -> SPDY.V2;
            case "spdy/3" -> SPDY.V3;
            default -> throw new IllegalArgumentException("jetty does not speak " + protocol);
        };
    }

    private static Set<String> pushes(Stream stream, Fields request) {
        short version = stream.getSession().getVersion();
        Fields.Field target = request.get(HTTPSPDYHeader.URI.name(version));
        return new LinkedHashSet<>(Folder.pushes(target.getValue()));
    }

    private static final class Answers extends AbstractHandler {
        private final Folder folder;

        Answers(Folder folder) {
            this.folder = folder;
        }

        @Override
        public void handle(String target, Request base, HttpServletRequest request, HttpServletResponse response)
                throws IOException, ServletException {
            byte[] body;
            if (request.getMethod().equals("POST")) {
                try (InputStream sent = request.getInputStream()) {
                    body = sent.readAllBytes();
                }
            } else {
                body = folder.file(target);
            }
            if (body == null) {
                response.setStatus(404);
                body = new byte[0];
            }
            response.setContentType("application/octet-stream");
            response.setContentLength(body.length);
            response.getOutputStream().write(body);
            base.setHandled(true);
        }
    }
}
