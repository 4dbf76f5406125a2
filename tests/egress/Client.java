import java.io.FileInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Fetches a URL as the documentation of java.net.http begins. Java reads no variable with a file of certificates. */
class Client {
    public static void main(String[] arguments) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var file = new FileInputStream(System.getenv("SSL_CERT_FILE"))) {
            for (Certificate one : CertificateFactory.getInstance("X.509").generateCertificates(file)) {
                store.setCertificateEntry(String.valueOf(store.size()), one);
            }
        }
        var trusted = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trusted.init(store);
        SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(null, trusted.getTrustManagers(), null);
        HttpClient client = HttpClient.newBuilder().sslContext(tls).build();
        HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[0])).build();
        System.out.println(client.send(request, BodyHandlers.ofString()).body());
    }
}
