package penstock.bench;

import java.time.Instant;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;

/** A source of texts "key,when it was emitted" at a rate, and the clock that they are stamped with. */
public final class StampedRecords {
    private StampedRecords() {}

    public static DataGeneratorSource<String> source(double rate, long records, long keys) {
        GeneratorFunction<Long, String> stamp = number -> number % keys + "," + micros();
        return new DataGeneratorSource<>(stamp, records, RateLimiterStrategy.perSecond(rate), Types.STRING);
    }

    /** Microseconds of wall-clock time, which every process on the machine has in common. */
    static long micros() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
    }
}
