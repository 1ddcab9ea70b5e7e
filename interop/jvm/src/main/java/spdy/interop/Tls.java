package spdy.interop;

import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;

/**
 * TLS contexts for clients and servers, by default of TLS 1.2. OkHttp 2.7 fails on the name of a later version; the other
 * libraries are as old.
 */
public final class Tls {
    private static final String DEFAULT_VERSION = "TLSv1.2";

    private Tls() {}

    /** A client context that accepts every certificate. */
    public static SSLContext forClient() throws Exception {
        X509TrustManager acceptAll = new X509TrustManager() {
            @Override
            public void checkClientTrusted(X509Certificate[] chain, String type) {}

            @Override
            public void checkServerTrusted(X509Certificate[] chain, String type) {}

            @Override
            public X509Certificate[] getAcceptedIssuers() {
                return new X509Certificate[0];
            }
        };
        return context(null, new TrustManager[] {acceptAll}, DEFAULT_VERSION);
    }

    /** A server context with the certificate and the key from these PEM files. */
    public static SSLContext forServer(String cert, String key) throws Exception {
        return forServer(cert, key, DEFAULT_VERSION);
    }

    /** The same for these versions of TLS, separated by commas. */
    public static SSLContext forServer(String cert, String key, String versions) throws Exception {
        Certificate[] chain = CertificateFactory.getInstance("X.509")
                .generateCertificates(new ByteArrayInputStream(Files.readAllBytes(Path.of(cert))))
                .toArray(Certificate[]::new);
        String pem = Files.readString(Path.of(key)).replaceAll("-----.*-----|\\s", "");
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        char[] password = "none".toCharArray();
        PKCS8EncodedKeySpec bytes = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem));
        store.setKeyEntry("key", KeyFactory.getInstance(chain[0].getPublicKey().getAlgorithm()).generatePrivate(bytes), password, chain);
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, password);
        return context(keys, null, versions);
    }

    private static SSLContext context(KeyManagerFactory keys, TrustManager[] trust, String versions) throws Exception {
        // A "TLS" context supports the versions in these properties. A "TLSv1.2" context limits only clients.
        System.setProperty("jdk.tls.server.protocols", versions);
        System.setProperty("jdk.tls.client.protocols", versions);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys == null ? null : keys.getKeyManagers(), trust, new SecureRandom());
        return context;
    }

    /** Makes {@code protocol} the only one that is offered or accepted by ALPN. */
    public static void setAlpn(String protocol, SSLEngine engine) {
        SSLParameters parameters = engine.getSSLParameters();
        parameters.setApplicationProtocols(new String[] {protocol});
        engine.setSSLParameters(parameters);
    }
}
