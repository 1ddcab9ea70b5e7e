package spdy.interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What a driver was started with: {@code --name value} pairs, and the words beside them. */
public final class Arguments {
    /** What every server takes. */
    public static final Map<String, String> OF_A_SERVER =
            Map.of("root", ".", "port", "0", "protocol", "spdy/3.1", "cert", "", "key", "", "mock", "");
    /** What every client takes. */
    public static final Map<String, String> OF_A_CLIENT =
            Map.of("repeat", "1", "post", "", "seconds", "60", "protocol", "spdy/3.1");

    private final Map<String, String> values;
    private final List<String> words = new ArrayList<>();

    /** Ends the program at a name that {@code known} has not: a slip of the pen must not pass unseen. */
    public Arguments(String[] given, Map<String, String> known) {
        values = new HashMap<>(known);
        for (int at = 0; at < given.length; at++) {
            String word = given[at];
            if (!word.startsWith("--")) {
                words.add(word);
            } else if (known.containsKey(word.substring(2)) && at + 1 < given.length) {
                at += 1;
                values.put(word.substring(2), given[at]);
            } else {
                System.err.println("no such option, or no value for it: " + word);
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

    public List<String> words() {
        return words;
    }
}
