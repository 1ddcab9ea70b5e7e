package spdy.interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Command-line arguments: {@code --name value} options and positional arguments. */
final class Options {
    private final Map<String, String> values;
    final List<String> positional = new ArrayList<>();

    /** Exits with an error on an option that is not in {@code defaults}, so that a typo does not go unnoticed. */
    Options(String[] args, Map<String, String> defaults) {
        values = new HashMap<>(defaults);
        for (int index = 0; index < args.length; index++) {
            if (!args[index].startsWith("--")) {
                positional.add(args[index]);
                continue;
            }
            String name = args[index].substring(2);
            if (!defaults.containsKey(name) || index + 1 == args.length) {
                System.err.println("unknown option or missing value: " + args[index]);
                System.exit(2);
            }
            values.put(name, args[++index]);
        }
    }

    String text(String name) {
        return values.get(name);
    }

    int number(String name) {
        return Integer.parseInt(values.get(name));
    }

    boolean has(String name) {
        return !values.get(name).isEmpty();
    }
}
