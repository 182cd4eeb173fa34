package penstock.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;

/** Notes when each record arrives. Every subtask has a file, made when it opens and written when it closes. */
public final class ArrivalSink implements Sink<String> {
    private final String folder;

    public ArrivalSink(String folder) {
        this.folder = folder;
    }

    @Override
    public SinkWriter<String> createWriter(WriterInitContext context) throws IOException {
        return new Writer(Files.createFile(Path.of(folder, "arrivals-" + UUID.randomUUID())));
    }

    private static final class Writer implements SinkWriter<String> {
        private final Path file;
        private final List<String> lines = new ArrayList<>();

        Writer(Path file) {
            this.file = file;
        }

        @Override
        public void write(String record, Context context) {
            lines.add(record.substring(record.indexOf(',') + 1) + " " + StampedRecords.micros());
        }

        @Override
        public void flush(boolean endOfInput) {}

        @Override
        public void close() throws IOException {
            Files.write(file, lines);
        }
    }
}
