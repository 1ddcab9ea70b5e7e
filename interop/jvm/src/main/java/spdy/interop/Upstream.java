package spdy.interop;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedDeque;

/**
 * Requests to one HTTP/1.1 server over persistent connections, one thread for each open request.
 *
 * <p>Java's own client accepts no target that {@code java.net.URI} rejects, and recorded pages have such targets.
 */
public final class Upstream {
    /** Headers of one connection, which a gateway does not forward. */
    private static final List<String> CONNECTION_HEADERS =
            List.of("connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade");

    private final String host;
    private final int port;
    /** Connections without a request. */
    private final Deque<Connection> idle = new ConcurrentLinkedDeque<>();

    /** {@code address} is HOST:PORT. */
    public Upstream(String address) {
        String[] parts = address.split(":");
        host = parts[0];
        port = Integer.parseInt(parts[1]);
    }

    /** A response: status, such as {@code 200 OK}, headers to forward, and body. */
    public record Response(String status, List<Map.Entry<String, String>> headers, byte[] body) {}

    /** Sends a request and waits for its response. The headers include {@code host}. */
    public Response send(String method, String target, List<Map.Entry<String, String>> headers, byte[] body)
            throws IOException {
        StringBuilder head = new StringBuilder(method + " " + target + " HTTP/1.1\r\n");
        for (Map.Entry<String, String> header : headers) {
            if (isForwarded(header.getKey()) && !header.getKey().equalsIgnoreCase("content-length")) {
                head.append(header.getKey() + ": " + header.getValue() + "\r\n");
            }
        }
        if (body.length > 0) {
            head.append("content-length: " + body.length + "\r\n");
        }
        byte[] request = head.append("\r\n").toString().getBytes(StandardCharsets.ISO_8859_1);
        Connection used = idle.pollLast();
        if (used != null) {
            try {
                return exchange(used, method, request, body);
            } catch (IOException e) {
                // The server closes a connection that rests, and answers no request on it.
                used.socket.close();
            }
        }
        return exchange(new Connection(host, port), method, request, body);
    }

    private Response exchange(Connection connection, String method, byte[] head, byte[] body) throws IOException {
        ByteArrayOutputStream request = new ByteArrayOutputStream();
        request.writeBytes(head);
        request.writeBytes(body);
        connection.socket.getOutputStream().write(request.toByteArray());
        Response response = connection.read(method);
        idle.addLast(connection);
        return response;
    }

    private static boolean isForwarded(String name) {
        return !CONNECTION_HEADERS.contains(name.toLowerCase());
    }

    private static final class Connection {
        private final Socket socket;
        private final InputStream input;

        Connection(String host, int port) throws IOException {
            socket = new Socket(host, port);
            socket.setTcpNoDelay(true);
            input = new BufferedInputStream(socket.getInputStream(), 64 << 10);
        }

        Response read(String method) throws IOException {
            String status = line();
            List<Map.Entry<String, String>> headers = new ArrayList<>();
            int length = 0;
            boolean chunked = false;
            for (String line = line(); !line.isEmpty(); line = line()) {
                int colon = line.indexOf(':');
                String name = line.substring(0, Math.max(colon, 0)).toLowerCase();
                String value = line.substring(colon + 1).strip();
                if (name.equals("content-length")) {
                    length = Integer.parseInt(value);
                }
                chunked |= name.equals("transfer-encoding") && value.equalsIgnoreCase("chunked");
                if (isForwarded(name)) {
                    headers.add(Map.entry(name, value));
                }
            }
            String code = status.substring(Math.min(status.length(), "HTTP/1.1 ".length()));
            boolean empty = method.equals("HEAD") || code.startsWith("204") || code.startsWith("304");
            byte[] body = empty ? new byte[0] : chunked ? chunks() : bytes(length);
            return new Response(code, headers, body);
        }

        private byte[] chunks() throws IOException {
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            while (true) {
                int length = Integer.parseInt(line().split(";")[0].strip(), 16);
                body.writeBytes(bytes(length));
                if (length > 0) {
                    line();
                    continue;
                }
                while (!line().isEmpty()) {} // trailers
                return body.toByteArray();
            }
        }

        private byte[] bytes(int length) throws IOException {
            byte[] bytes = input.readNBytes(length);
            if (bytes.length < length) {
                throw new EOFException("the response ends after " + bytes.length + " of " + length + " bytes");
            }
            return bytes;
        }

        private String line() throws IOException {
            StringBuilder line = new StringBuilder();
            for (int next = input.read(); next != '\n'; next = input.read()) {
                if (next < 0) {
                    throw new EOFException("the connection ended in a head");
                }
                if (next != '\r') {
                    line.append((char) next);
                }
            }
            return line.toString();
        }
    }
}
