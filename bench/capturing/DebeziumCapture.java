import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.embedded.async.ConvertingAsyncEngineBuilderFactory;
import io.debezium.engine.format.Json;
import io.debezium.engine.format.KeyValueChangeEventFormat;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Properties;

/**
 * Debezium's engine with the properties of a file: the events of one topic are appended to a file, a line each, and forced to the disk batch by batch.
 *
 * Janino compiles it, which knows no lambdas, and generics only as decoration.
 */
public class DebeziumCapture implements DebeziumEngine.ChangeConsumer, DebeziumEngine.CompletionCallback {

    private final String topic;
    private final FileChannel events;
    private long count = 0;

    private DebeziumCapture(String topic, String file) throws Exception {
        this.topic = topic;
        this.events = new FileOutputStream(file, true).getChannel();
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.load(new FileInputStream(arguments[0]));
        DebeziumCapture capture = new DebeziumCapture(arguments[1], arguments[2]);
        DebeziumEngine.Builder builder = new ConvertingAsyncEngineBuilderFactory().builder(KeyValueChangeEventFormat.of(Json.class, Json.class));
        builder = builder.using(properties).using((DebeziumEngine.CompletionCallback) capture);
        DebeziumEngine engine = builder.notifying((DebeziumEngine.ChangeConsumer) capture).build();
        Thread running = new Thread((Runnable) engine);
        running.start();
        // Until the process that started it closes its input.
        while (System.in.read() >= 0) { }
        engine.close();
        running.join();
        System.exit(0);
    }

    /** Prints, after each batch: how many events there are by now, when the last was safe, and what this process has worked; both in milliseconds. */
    public void handleBatch(List records, DebeziumEngine.RecordCommitter committer) throws InterruptedException {
        StringBuilder lines = new StringBuilder();
        for (int place = 0; place < records.size(); place++) {
            ChangeEvent event = (ChangeEvent) records.get(place);
            if (topic.equals(event.destination()) && event.value() != null) {
                lines.append((String) event.value()).append('\n');
                count++;
            }
        }
        try {
            events.write(ByteBuffer.wrap(lines.toString().getBytes(StandardCharsets.UTF_8)));
            events.force(false);
        } catch (java.io.IOException problem) {
            throw new RuntimeException(problem);
        }
        Duration worked = (Duration) ProcessHandle.current().info().totalCpuDuration().get();
        System.out.println(count + " " + System.currentTimeMillis() + " " + worked.toMillis());
        for (int place = 0; place < records.size(); place++) {
            committer.markProcessed(records.get(place));
        }
        committer.markBatchFinished();
    }

    public void handle(boolean success, String message, Throwable problem) {
        if (!success) {
            System.err.println("Debezium ended: " + message);
            System.exit(1);
        }
    }
}
