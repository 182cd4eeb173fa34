package penstock.bench;

import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;

/** The patterns of `cep_penstock.py` in FlinkCEP; called with `pattern records keys`. */
public final class Patterns {
    private static final int PARALLELISM = 2;
    private static final int[] KINDS = {0, 1, 1, 2};
    private static final int WITHIN_ROUNDS = 3;
    private static final TypeInformation<Tuple3<Long, Integer, Long>> EVENT = TypeInformation.of(new TypeHint<>() {});

    static SimpleCondition<Tuple3<Long, Integer, Long>> is(int kind) {
        return SimpleCondition.of(event -> event.f1 == kind);
    }

    static Pattern<Tuple3<Long, Integer, Long>, ?> pattern(String name, long keys) {
        Pattern<Tuple3<Long, Integer, Long>, ?> start =
                Pattern.<Tuple3<Long, Integer, Long>>begin("a").where(is(0)).followedBy("b").where(is(1));
        if (name.equals("two")) {
            return start;
        }
        if (name.equals("loop")) {
            @SuppressWarnings("unchecked")
            Pattern<Tuple3<Long, Integer, Long>, Tuple3<Long, Integer, Long>> loop =
                    (Pattern<Tuple3<Long, Integer, Long>, Tuple3<Long, Integer, Long>>) start.oneOrMore();
            return loop.until(is(2));
        }
        return start.followedBy("c").where(is(2)).within(Duration.ofMillis(WITHIN_ROUNDS * KINDS.length * keys));
    }

    static Tuple3<Long, Integer, Long> event(long number, long records, long keys) {
        long half = records / 2;
        long n = number < half ? 2 * number : 2 * (number - half) + 1;
        return Tuple3.of(n % keys, KINDS[(int) (n / keys % KINDS.length)], n);
    }

    public static void main(String[] arguments) throws Exception {
        long records = Long.parseLong(arguments[1]);
        long keys = Long.parseLong(arguments[2]);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(PARALLELISM);
        DataStream<Tuple3<Long, Integer, Long>> events =
                env.fromSequence(0, records - 1)
                        .map(number -> event(number, records, keys))
                        .returns(EVENT)
                        .assignTimestampsAndWatermarks(
                                WatermarkStrategy.<Tuple3<Long, Integer, Long>>forMonotonousTimestamps()
                                        .withTimestampAssigner((event, before) -> event.f2))
                        .keyBy(event -> event.f0);
        PatternSelectFunction<Tuple3<Long, Integer, Long>, Long> key = match -> match.get("a").get(0).f0;
        DataStream<Long> found =
                CEP.pattern(events, pattern(arguments[0], keys)).select(key, Types.LONG).filter(each -> each == 0);
        long matches = 0;
        long start = System.nanoTime();
        try (CloseableIterator<Long> results = found.executeAndCollect()) {
            while (results.hasNext()) {
                results.next();
                matches += 1;
            }
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        long expected = records / keys / KINDS.length * (arguments[0].equals("loop") ? 2 : 1);
        if (matches != expected) {
            throw new IllegalStateException(matches + " matches of key 0 instead of " + expected);
        }
        System.out.printf("{\"seconds\": %s, \"records\": %d}%n", seconds, records);
        System.exit(0);
    }
}
