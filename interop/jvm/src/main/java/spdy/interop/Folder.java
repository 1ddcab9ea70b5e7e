package spdy.interop;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The files that a server driver gives out. */
public final class Folder {
    private final Path root;
    /** Files by target; each is read once, so that what is measured is the server and not the disk. */
    private final Map<String, byte[]> known = new ConcurrentHashMap<>();

    public Folder(String root) throws IOException {
        this.root = Path.of(root).toRealPath();
    }

    /** The file that {@code target}, a path with or without a query, names; null if there is none. */
    public byte[] file(String target) throws IOException {
        byte[] bytes = known.get(target);
        if (bytes == null) {
            Path file = root.resolve("." + URI.create(target).getPath()).normalize();
            if (file.startsWith(root) && Files.isRegularFile(file)) {
                bytes = Files.readAllBytes(file);
                known.put(target, bytes);
            }
        }
        return bytes;
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
