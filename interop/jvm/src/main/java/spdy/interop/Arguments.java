package spdy.interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Command-line arguments of a driver: {@code --name value} options and positional arguments. */
public final class Arguments {
    /** Options of every server, with their defaults. */
    public static final Map<String, String> SERVER_OPTIONS =
            Map.of("root", ".", "port", "0", "protocol", "spdy/3.1", "cert", "", "key", "", "mock", "");
    /** Options of every client, with their defaults. */
    public static final Map<String, String> CLIENT_OPTIONS =
            Map.of("repeat", "1", "post", "", "seconds", "60", "protocol", "spdy/3.1");

    private final Map<String, String> values;
    private final List<String> positional = new ArrayList<>();

    /** Exits with an error on an option that is not in {@code defaults}, so that a typo does not go unnoticed. */
    public Arguments(String[] args, Map<String, String> defaults) {
        values = new HashMap<>(defaults);
        for (int index = 0; index < args.length; index++) {
            String arg = args[index];
            if (!arg.startsWith("--")) {
                positional.add(arg);
            } else if (defaults.containsKey(arg.substring(2)) && index + 1 < args.length) {
                index += 1;
                values.put(arg.substring(2), args[index]);
            } else {
                System.err.println("unknown option or missing value: " + arg);
                System.exit(2);
            }
        }
    }

    public String text(String name) {
        return values.get(name);
    }

    public int number(String name) {
        return Integer.parseInt(values.get(name));
    }

    public boolean has(String name) {
        return !values.get(name).isEmpty();
    }

    public List<String> positional() {
        return positional;
    }
}
