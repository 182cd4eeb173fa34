package penstock.bench;

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.CloseableIterator;
import org.apache.flink.util.Collector;

/**
 * The keyed count of `workloads.py` in Flink's own language, with its settings as they are.
 *
 * <p>Called like every peer with `workload records keys`, it prints one line of JSON.
 */
public final class KeyedCount {
    private static final int PARALLELISM = 2;
    private static final long EVERY = 1000;
    private static final TypeInformation<Tuple2<Long, Long>> PAIR = TypeInformation.of(new TypeHint<>() {});

    /** Counts in a ValueState, and emits every thousandth count of a key. */
    static final class Count extends KeyedProcessFunction<Long, Tuple2<Long, Long>, Tuple2<Long, Long>> {
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
        }

        @Override
        public void processElement(Tuple2<Long, Long> pair, Context context, Collector<Tuple2<Long, Long>> out)
                throws Exception {
            Long known = count.value();
            long counted = (known == null ? 0 : known) + pair.f1;
            count.update(counted);
            if (counted % EVERY == 0) {
                out.collect(Tuple2.of(pair.f0, counted));
            }
        }
    }

    static DataStream<Tuple2<Long, Long>> counts(StreamExecutionEnvironment env, long records, long keys) {
        return env.fromSequence(0, records - 1)
                .map(number -> Tuple2.of(number % keys, 1L))
                .returns(PAIR)
                .keyBy(pair -> pair.f0)
                .process(new Count())
                .filter(pair -> pair.f1 > 0);
    }

    public static void main(String[] arguments) throws Exception {
        if (!arguments[0].equals("keyed_count")) {
            throw new IllegalArgumentException("this program knows the keyed count alone, not " + arguments[0]);
        }
        long records = Long.parseLong(arguments[1]);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(PARALLELISM);
        DataStream<Tuple2<Long, Long>> counts = counts(env, records, Long.parseLong(arguments[2]));
        long results = 0;
        long sum = 0;
        long start = System.nanoTime();
        try (CloseableIterator<Tuple2<Long, Long>> collected = counts.executeAndCollect()) {
            while (collected.hasNext()) {
                Tuple2<Long, Long> pair = collected.next();
                results += 1;
                sum += (pair.f0 + 1) * pair.f1;
            }
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        System.out.printf("{\"seconds\": %s, \"records\": %d, \"results\": [%d, %d]}%n", seconds, records, results, sum);
        System.exit(0);
    }
}
