package org.eclipse.jetty.alpn;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;

/**
 * The class that OkHttp 2.7 calls for ALPN. Jetty provided it on the boot class path of Java 7 and 8. TLS sockets
 * support ALPN since Java 9, so this class only passes the protocol names to the socket and back. OkHttp looks it up
 * by name and calls it by reflection.
 */
public final class ALPN {
    public interface Provider {}

    /** Offers the client's protocols and receives the selected one. */
    public interface ClientProvider extends Provider {
        List<String> protocols();

        void selected(String protocol);

        void unsupported();
    }

    /** Selects the server's protocol. OkHttp's proxy object implements both provider interfaces. */
    public interface ServerProvider extends Provider {
        String select(List<String> protocols);

        void unsupported();
    }

    private static final Map<SSLSocket, Provider> PROVIDERS = Collections.synchronizedMap(new WeakHashMap<>());

    private ALPN() {}

    /** Called before the handshake: sets the protocols to offer. */
    public static void put(SSLSocket socket, Provider provider) {
        PROVIDERS.put(socket, provider);
        SSLParameters parameters = socket.getSSLParameters();
        parameters.setApplicationProtocols(((ClientProvider) provider).protocols().toArray(String[]::new));
        socket.setSSLParameters(parameters);
    }

    /** Called after the handshake: passes the negotiated protocol to the provider and returns the provider. */
    public static Provider get(SSLSocket socket) {
        ClientProvider provider = (ClientProvider) PROVIDERS.get(socket);
        String negotiated = socket.getApplicationProtocol();
        if (negotiated == null || negotiated.isEmpty()) {
            provider.unsupported();
        } else {
            provider.selected(negotiated);
        }
        return provider;
    }

    /** Called when the handshake has succeeded or failed. */
    public static void remove(SSLSocket socket) {
        PROVIDERS.remove(socket);
    }
}
