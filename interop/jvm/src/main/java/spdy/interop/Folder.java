package spdy.interop;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The files that a server driver serves. */
public final class Folder {
    private final Path root;
    /** Files by target. Each is read once, so that measurements do not include the disk. */
    private final Map<String, byte[]> cache = new ConcurrentHashMap<>();

    public Folder(String root) throws IOException {
        this.root = Path.of(root).toRealPath();
    }

    /** Contents of the file at {@code target}, a path with an optional query; null if there is no such file. */
    public byte[] file(String target) throws IOException {
        byte[] bytes = cache.get(target);
        if (bytes == null) {
            Path file = root.resolve("." + URI.create(target).getPath()).normalize();
            if (file.startsWith(root) && Files.isRegularFile(file)) {
                bytes = Files.readAllBytes(file);
                cache.put(target, bytes);
            }
        }
        return bytes;
    }

    /** The paths to push with {@code target}: {@code /b} and {@code /c} for {@code /a?push=b,c}. */
    public static List<String> pushPaths(String target) {
        String query = URI.create(target).getQuery();
        if (query == null || !query.startsWith("push=")) {
            return List.of();
        }
        return Arrays.stream(query.substring(5).split(",")).map(name -> "/" + name).toList();
    }

    /** Prints the line of JSON that reports a listening server to the tests. */
    public static void printReady(String peer, int port, String protocol, boolean tls) {
        System.out.printf(
                "{\"peer\":\"%s\",\"port\":%d,\"protocol\":\"%s\",\"tls\":%b}%n", peer, port, protocol, tls);
    }
}
