import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import javax.net.ssl.TrustManagerFactory;

/** What Java programs lean on, each once. Prints one line for what works, and ends with an error at what does not. */
public class Main {
    static void works(String what) {
        System.out.println("works: " + what);
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    public static void main(String[] args) throws Exception {
        var pool = Executors.newFixedThreadPool(8);
        var jobs = new ArrayList<Callable<Integer>>();
        for (int i = 0; i < 100; i++) {
            int n = i;
            jobs.add(() -> n * n);
        }
        int sum = 0;
        for (var result : pool.invokeAll(jobs)) {
            sum += result.get();
        }
        check(sum == 328350, "threads");
        check(IntStream.range(0, 1_000_000).parallel().mapToLong(n -> n).sum() == 499999500000L, "parallel stream");
        works("threads");

        Path directory = Files.createTempDirectory("java-");
        overSocket(directory.resolve("channel.sock"), pool);
        works("a selector over unix domain sockets");

        Path file = directory.resolve("file");
        Files.writeString(file, "x".repeat(100_000));
        try (var channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            var map = channel.map(FileChannel.MapMode.READ_WRITE, 0, channel.size());
            map.put(0, (byte) 'y');
            map.force();
        }
        check(Files.readString(file).startsWith("yx"), "mapped file");
        works("files, mapped ones too");

        var child = new ProcessBuilder("/bin/echo", "child").start();
        check(new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8).equals("child\n"), "child");
        check(child.waitFor() == 0, "child");
        works("children");

        KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
        new SecureRandom().nextInt();
        var authorities = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        authorities.init((KeyStore) null);
        works("randomness, keys, and the certificates of authorities");

        for (int i = 0; i < 200; i++) {
            check(new byte[1 << 20].length == 1 << 20, "allocation");
        }
        System.gc();
        long hot = 0;
        for (int n = 0; n < 50_000_000; n++) {
            hot = (hot + (long) n * n) % 1000003;
        }
        check(hot >= 0, "hot loop");
        works("garbage collection and the compiler");

        check(ZonedDateTime.now().getYear() > 2000 && Runtime.getRuntime().availableProcessors() > 0, "system");
        check(ProcessHandle.current().pid() > 0, "own process");
        works("clock, processors, own process");

        try (var socket = new java.net.Socket()) {
            socket.connect(new java.net.InetSocketAddress("192.0.2.1", 80), 1000);
            throw new AssertionError("it reached the internet");
        } catch (java.io.IOException error) {
            works("nothing of the internet: " + error.getMessage());
        }
        pool.shutdown();
        System.out.println("all of it works");
    }

    static void overSocket(Path path, java.util.concurrent.ExecutorService pool) throws Exception {
        var address = UnixDomainSocketAddress.of(path);
        try (var server = ServerSocketChannel.open(StandardProtocolFamily.UNIX); var selector = Selector.open()) {
            server.bind(address).configureBlocking(false);
            server.register(selector, SelectionKey.OP_ACCEPT);
            var client = pool.submit(() -> {
                try (var channel = SocketChannel.open(address)) {
                    channel.write(ByteBuffer.wrap("hello".getBytes(StandardCharsets.UTF_8)));
                    var answer = ByteBuffer.allocate(5);
                    while (answer.hasRemaining() && channel.read(answer) >= 0) {}
                    return new String(answer.array(), StandardCharsets.UTF_8);
                }
            });
            selector.select();
            try (var channel = server.accept()) {
                var question = ByteBuffer.allocate(5);
                while (question.hasRemaining() && channel.read(question) >= 0) {}
                channel.write(question.flip());
            }
            check(client.get().equals("hello"), "channel");
        }
    }
}
