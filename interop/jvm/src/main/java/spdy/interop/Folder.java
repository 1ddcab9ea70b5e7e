package spdy.interop;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** The files that a server driver gives out. */
public final class Folder {
    private final Path root;

    public Folder(String root) throws IOException {
        this.root = Path.of(root).toRealPath();
    }

    /** The file that {@code target}, a path with or without a query, names; null if there is none. */
    public byte[] file(String target) throws IOException {
        Path file = root.resolve("." + URI.create(target).getPath()).normalize();
        return file.startsWith(root) && Files.isRegularFile(file) ? Files.readAllBytes(file) : null;
    }

    /** The paths to push beside {@code target}: {@code /a?push=b,c} wants {@code /b} and {@code /c}. */
    public static List<String> pushes(String target) {
        String query = URI.create(target).getQuery();
        if (query == null || !query.startsWith("push=")) {
            return List.of();
        }
        return Arrays.stream(query.substring(5).split(",")).map(name -> "/" + name).toList();
    }

    /** Says that a server is up, in the line that the tests wait for. */
    public static void ready(String peer, int port, String protocol, boolean tls) {
        System.out.printf(
                "{\"peer\":\"%s\",\"port\":%d,\"protocol\":\"%s\",\"tls\":%b}%n", peer, port, protocol, tls);
    }
}
