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

/** What a client driver asks for, what came, and the report of it. */
public final class Exchanges {
    /** One request, or one push. Only one thread at a time adds to it. */
    public static final class Exchange {
        public final URI url;
        private final MessageDigest digest;
        private final CountDownLatch open;
        private volatile int status;
        private volatile long bytes;
        private volatile String sha256;
        private volatile String error;

        private Exchange(URI url, CountDownLatch open) {
            this.url = url;
            this.open = open;
            try {
                digest = MessageDigest.getInstance("SHA-256");
            } catch (NoSuchAlgorithmException e) {
                throw new IllegalStateException(e);
            }
        }

        /** Path and query, as a request names them. */
        public String target() {
            return url.getRawPath() + (url.getRawQuery() == null ? "" : "?" + url.getRawQuery());
        }

        /** The status as SPDY writes it, with a reason or without. */
        public void status(String text) {
            status = Integer.parseInt(text.split(" ", 2)[0]);
        }

        /** A piece of the body. */
        public void add(byte[] piece, int from, int length) {
            digest.update(piece, from, length);
            bytes += length;
        }

        /** The body ended as it should. */
        public void finish() {
            if (sha256 == null && error == null) {
                sha256 = HexFormat.of().formatHex(digest.digest());
                open.countDown();
            }
        }

        /** It ended otherwise. */
        public void fail(Object why) {
            if (sha256 == null && error == null) {
                error = String.valueOf(why);
                open.countDown();
            }
        }

        private String json() {
            return String.format(
                    "{\"url\":%s,\"status\":%d,\"bytes\":%d,\"sha256\":%s,\"error\":%s}",
                    quoted(url.toString()), status, bytes, quoted(sha256), quoted(error));
        }
    }

    /** In the order of the arguments. */
    public final List<Exchange> asked = new ArrayList<>();
    /** What is posted to each URL; null for GET. */
    public final byte[] body;
    /** Where all URLs point to. */
    public final URI origin;

    private final List<Exchange> pushed = Collections.synchronizedList(new ArrayList<>());
    private final List<String> errors = Collections.synchronizedList(new ArrayList<>());
    private final String peer;
    private final String protocol;
    private final int seconds;
    private final CountDownLatch open;

    public Exchanges(String peer, Arguments arguments) throws IOException {
        this.peer = peer;
        protocol = arguments.text("protocol");
        seconds = arguments.number("seconds");
        body = arguments.has("post") ? Files.readAllBytes(Path.of(arguments.text("post"))) : null;
        int rounds = arguments.number("repeat");
        open = new CountDownLatch(rounds * arguments.words().size());
        for (int round = 0; round < rounds; round++) {
            arguments.words().forEach(word -> asked.add(new Exchange(URI.create(word), open)));
        }
        if (asked.isEmpty()) {
            System.err.println("give URLs of one origin");
            System.exit(2);
        }
        origin = asked.get(0).url;
    }

    public boolean secure() {
        return origin.getScheme().equals("https");
    }

    public String method() {
        return body == null ? "GET" : "POST";
    }

    /** A response without a request. */
    public Exchange pushed(String path) {
        Exchange exchange = new Exchange(URI.create(path), new CountDownLatch(1));
        pushed.add(exchange);
        return exchange;
    }

    /** The session is lost, and with it what is open. */
    public void lost(Object why) {
        errors.add(String.valueOf(why));
        while (open.getCount() > 0) {
            open.countDown();
        }
    }

    /** Waits for all answers, prints the report and ends the program: 0 if every answer is whole. */
    public void report() throws InterruptedException {
        if (!open.await(seconds, TimeUnit.SECONDS)) {
            errors.add("not done after " + seconds + " s");
        }
        for (Exchange push : List.copyOf(pushed)) {
            push.open.await(seconds, TimeUnit.SECONDS);
        }
        System.out.printf(
                "{\"peer\":\"%s\",\"protocol\":\"%s\",\"responses\":[%s],\"pushed\":[%s],\"errors\":[%s]}%n",
                peer,
                protocol,
                String.join(",", asked.stream().map(Exchange::json).toList()),
                String.join(",", List.copyOf(pushed).stream().map(Exchange::json).toList()),
                String.join(",", List.copyOf(errors).stream().map(Exchanges::quoted).toList()));
        boolean whole = errors.isEmpty() && asked.stream().allMatch(exchange -> exchange.sha256 != null);
        // The library's threads may wait forever, and an orderly shutdown would send data that no peer reads.
        System.out.flush();
        Runtime.getRuntime().halt(whole ? 0 : 1);
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
