package spdy.interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** {@code --name value} pairs, and the words beside them. */
final class Options {
    private final Map<String, String> values;
    final List<String> words = new ArrayList<>();

    /** A name that {@code defaults} lacks ends the program: a mistyped option must not pass unseen. */
    Options(String[] given, Map<String, String> defaults) {
        values = new HashMap<>(defaults);
        for (int at = 0; at < given.length; at++) {
            if (!given[at].startsWith("--")) {
                words.add(given[at]);
                continue;
            }
            String name = given[at].substring(2);
            if (!defaults.containsKey(name) || at + 1 == given.length) {
                System.err.println("unknown option or no value: " + given[at]);
                System.exit(2);
            }
            values.put(name, given[++at]);
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
