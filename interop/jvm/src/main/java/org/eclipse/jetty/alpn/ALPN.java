package org.eclipse.jetty.alpn;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;

/**
 * The door by which OkHttp 2.7 asks for ALPN: a class that Jetty once put into the boot class path of Java 7
 * and 8. Since Java 9 TLS sockets know ALPN themselves, so this one only carries the names to them and back.
 * OkHttp finds it by its name and calls it by reflection.
 */
public final class ALPN {
    public interface Provider {}

    /** What a client offers, and hears. */
    public interface ClientProvider extends Provider {
        List<String> protocols();

        void selected(String protocol);

        void unsupported();
    }

    /** What a server is asked; OkHttp's has the methods of a client as well, by one proxy for both. */
    public interface ServerProvider extends Provider {
        String select(List<String> protocols);

        void unsupported();
    }

    private static final Map<SSLSocket, Provider> PROVIDERS = Collections.synchronizedMap(new WeakHashMap<>());

    private ALPN() {}

    /** Before the handshake: what may be agreed on. */
    public static void put(SSLSocket socket, Provider provider) {
        PROVIDERS.put(socket, provider);
        SSLParameters parameters = socket.getSSLParameters();
        parameters.setApplicationProtocols(((ClientProvider) provider).protocols().toArray(String[]::new));
        socket.setSSLParameters(parameters);
    }

    /** After the handshake: the provider, told what was agreed on. */
    public static Provider get(SSLSocket socket) {
        ClientProvider provider = (ClientProvider) PROVIDERS.get(socket);
        String agreed = socket.getApplicationProtocol();
        if (agreed == null || agreed.isEmpty()) {
            provider.unsupported();
        } else {
            provider.selected(agreed);
        }
        return provider;
    }

    /** The socket's TLS is set up, or was given up. */
    public static void remove(SSLSocket socket) {
        PROVIDERS.remove(socket);
    }
}
