package spdy.interop;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** The requests of a client driver, the responses and pushes it received, and the report. */
public final class Exchanges {
    /** One request and its response, or one push. Only one thread at a time may change it. */
    public static final class Exchange {
        public final URI url;
        private final MessageDigest digest;
        private final CountDownLatch pending;
        private volatile int status;
        private volatile long bytes;
        private volatile String sha256;
        private volatile String error;

        private Exchange(URI url, CountDownLatch pending) {
            this.url = url;
            this.pending = pending;
            try {
                digest = MessageDigest.getInstance("SHA-256");
            } catch (NoSuchAlgorithmException e) {
                throw new IllegalStateException(e);
            }
        }

        /** Path and query, in the form of a request target. */
        public String target() {
            return url.getRawPath() + (url.getRawQuery() == null ? "" : "?" + url.getRawQuery());
        }

        /** Sets the status from the {@code :status} header, which may have a reason phrase. */
        public void setStatus(String text) {
            status = Integer.parseInt(text.split(" ", 2)[0]);
        }

        /** Adds a chunk of the body. */
        public void addBody(byte[] chunk, int offset, int length) {
            digest.update(chunk, offset, length);
            bytes += length;
        }

        /** Marks the body as complete. */
        public void finish() {
            if (sha256 == null && error == null) {
                sha256 = HexFormat.of().formatHex(digest.digest());
                pending.countDown();
            }
        }

        /** Marks the exchange as failed. */
        public void fail(Object reason) {
            if (sha256 == null && error == null) {
                error = String.valueOf(reason);
                pending.countDown();
            }
        }

        private String json() {
            return String.format(
                    "{\"url\":%s,\"status\":%d,\"bytes\":%d,\"sha256\":%s,\"error\":%s}",
                    quoted(url.toString()), status, bytes, quoted(sha256), quoted(error));
        }
    }

    /** One exchange for each requested URL, in the order of the arguments. */
    public final List<Exchange> requests = new ArrayList<>();
    /** Body to POST to each URL; null for GET. */
    public final byte[] body;
    /** The first URL; all URLs have its origin. */
    public final URI origin;

    private final List<Exchange> pushed = Collections.synchronizedList(new ArrayList<>());
    private final List<String> errors = Collections.synchronizedList(new ArrayList<>());
    private final String peer;
    private final String protocol;
    private final int timeoutSeconds;
    private final CountDownLatch pending;

    public Exchanges(String peer, Arguments arguments) throws IOException {
        this.peer = peer;
        protocol = arguments.text("protocol");
        timeoutSeconds = arguments.number("seconds");
        body = arguments.has("post") ? Files.readAllBytes(Path.of(arguments.text("post"))) : null;
        int rounds = arguments.number("repeat");
        pending = new CountDownLatch(rounds * arguments.positional().size());
        for (int round = 0; round < rounds; round++) {
            arguments.positional().forEach(url -> requests.add(new Exchange(URI.create(url), pending)));
        }
        if (requests.isEmpty()) {
            System.err.println("expected URLs of one origin");
            System.exit(2);
        }
        origin = requests.get(0).url;
    }

    public boolean isSecure() {
        return origin.getScheme().equals("https");
    }

    public String method() {
        return body == null ? "GET" : "POST";
    }

    /** Adds a pushed response. */
    public Exchange addPush(String path) {
        Exchange exchange = new Exchange(URI.create(path), new CountDownLatch(1));
        pushed.add(exchange);
        return exchange;
    }

    /** Records that the session has failed, and stops waiting for pending streams. */
    public void sessionFailed(Object reason) {
        errors.add(String.valueOf(reason));
        while (pending.getCount() > 0) {
            pending.countDown();
        }
    }

    /** Waits for all responses, prints the report and exits: with 0 if every response is complete. */
    public void report() throws InterruptedException {
        if (!pending.await(timeoutSeconds, TimeUnit.SECONDS)) {
            errors.add("not done after " + timeoutSeconds + " s");
        }
        for (Exchange push : List.copyOf(pushed)) {
            push.pending.await(timeoutSeconds, TimeUnit.SECONDS);
        }
        System.out.printf(
                "{\"peer\":\"%s\",\"protocol\":\"%s\",\"responses\":[%s],\"pushed\":[%s],\"errors\":[%s]}%n",
                peer,
                protocol,
                String.join(",", requests.stream().map(Exchange::json).toList()),
                String.join(",", List.copyOf(pushed).stream().map(Exchange::json).toList()),
                String.join(",", List.copyOf(errors).stream().map(Exchanges::quoted).toList()));
        boolean complete = errors.isEmpty() && requests.stream().allMatch(exchange -> exchange.sha256 != null);
        // The library's threads may wait forever, and an orderly shutdown would send data that no peer reads.
        System.out.flush();
        Runtime.getRuntime().halt(complete ? 0 : 1);
    }

    private static String quoted(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder out = new StringBuilder("\"");
        text.chars().forEach(c -> {
            if (c < ' ' || c == '"' || c == '\\') {
                out.append(String.format("\\u%04x", c));
            } else {
                out.append((char) c);
            }
        });
        return out.append('"').toString();
    }
}
