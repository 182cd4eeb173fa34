import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.PlanReference;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.planner.factories.TestValuesTableFactory;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/** Runs the programs of programs.py on Flink, and writes the changes before and after a savepoint. */
public class FlinkPrograms {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        Map<String, Object> recorded = new LinkedHashMap<>();
        Path target = Path.of(args[1]);
        if (Files.exists(target)) {
            recorded.putAll(JSON.readValue(target.toFile(), Map.class));
        }
        for (JsonNode program : JSON.readTree(Path.of(args[0]).toFile())) {
            String name = program.get("name").asText();
            if (recorded.containsKey(name)) {
                continue;
            }
            try {
                recorded.put(name, run(program));
                System.out.println("recorded " + name);
            } catch (Throwable error) {
                Throwable cause = error;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                System.out.println("NOT recorded " + name + ": " + cause);
            }
            JSON.writerWithDefaultPrettyPrinter().writeValue(target.toFile(), recorded);
        }
        System.exit(0);
    }

    static Map<String, Object> run(JsonNode program) throws Exception {
        Path folder = Files.createTempDirectory("programs");
        Path plan = folder.resolve("plan.json");
        TestValuesTableFactory.clearAllData();
        StreamTableEnvironment first = environment(program, null);
        declare(first, program, "before", false);
        first.compilePlanSql("INSERT INTO s " + program.get("sql").asText()).writeToFile(plan);
        JobClient job = first.loadPlan(PlanReference.fromFile(plan)).execute().getJobClient().get();
        List<String> before = settled();
        String savepoint = job.stopWithSavepoint(false, folder.toUri().toString(), SavepointFormatType.NATIVE).get();
        before = new ArrayList<>(TestValuesTableFactory.getRawResultsAsStrings("s"));
        TestValuesTableFactory.clearAllData();
        StreamTableEnvironment second = environment(program, savepoint);
        declare(second, program, "after", true);
        TableResult result = second.loadPlan(PlanReference.fromFile(plan)).execute();
        result.await(60, java.util.concurrent.TimeUnit.SECONDS);
        List<String> after = new ArrayList<>(TestValuesTableFactory.getRawResultsAsStrings("s"));
        Map<String, Object> both = new LinkedHashMap<>();
        both.put("before", before);
        both.put("after", after);
        return both;
    }

    static StreamTableEnvironment environment(JsonNode program, String savepoint) {
        Configuration options = new Configuration();
        options.setString("parallelism.default", "1");
        options.setString("pipeline.auto-watermark-interval", "0 ms");
        options.setString("table.local-time-zone", "UTC");
        options.setString("table.plan.compile.catalog-objects", "SCHEMA");
        options.setString("table.optimizer.agg-phase-strategy", "ONE_PHASE");
        program.get("options").fields().forEachRemaining(o -> options.setString(o.getKey(), o.getValue().asText()));
        if (savepoint != null) {
            options.setString("execution.state-recovery.path", savepoint);
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(options);
        env.setParallelism(1);
        return StreamTableEnvironment.create(env);
    }

    static void declare(StreamTableEnvironment tables, JsonNode program, String part, boolean ends) {
        for (JsonNode source : program.get("sources")) {
            List<Row> rows = new ArrayList<>();
            for (JsonNode given : source.get(part)) {
                Object[] values = new Object[given.size() - 1];
                for (int i = 1; i < given.size(); i++) {
                    JsonNode value = given.get(i);
                    values[i - 1] = value.isNull() ? null : value.isInt() ? (Object) value.asInt() : value.asText();
                }
                rows.add(Row.ofKind(kind(given.get(0).asText()), values));
            }
            String id = TestValuesTableFactory.registerData(rows);
            tables.executeSql("CREATE TABLE " + source.get("name").asText() + " (" + source.get("columns").asText()
                    + ") WITH ('connector' = 'values', 'bounded' = 'false', 'disable-lookup' = 'true', 'runtime-source' = 'NewSource', "
                    + "'changelog-mode' = '" + source.get("modes").asText() + "', 'terminating' = '" + ends
                    + "', 'data-id' = '" + id + "')");
        }
        tables.executeSql("CREATE TABLE s (" + program.get("sink").asText()
                + ") WITH ('connector' = 'values', 'sink-insert-only' = 'false')");
    }

    static RowKind kind(String text) {
        return switch (text) {
            case "+I" -> RowKind.INSERT;
            case "-U" -> RowKind.UPDATE_BEFORE;
            case "+U" -> RowKind.UPDATE_AFTER;
            default -> RowKind.DELETE;
        };
    }

    /** Waits until the sink has had no new row for a while. */
    static List<String> settled() throws Exception {
        List<String> seen = new ArrayList<>();
        int same = 0;
        for (int turn = 0; turn < 400 && same < 24; turn++) {
            Thread.sleep(125);
            List<String> now;
            try {
                now = new ArrayList<>(TestValuesTableFactory.getRawResultsAsStrings("s"));
            } catch (RuntimeException none) {
                now = new ArrayList<>();
            }
            same = now.equals(seen) && (!seen.isEmpty() || turn > 120) ? same + 1 : 0;
            seen = now;
        }
        return seen;
    }
}
