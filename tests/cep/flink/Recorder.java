import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.EventComparator;
import org.apache.flink.cep.PatternFlatSelectFunction;
import org.apache.flink.cep.PatternFlatTimeoutFunction;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.PatternTimeoutFunction;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.aftermatch.SkipToFirstStrategy;
import org.apache.flink.cep.nfa.aftermatch.SkipToLastStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.legacy.SinkFunction;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Runs cases of the JSON language of `check.py` on FlinkCEP: called with the file of cases and that of results. */
@SuppressWarnings({"unchecked", "rawtypes"})
public final class Recorder {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, List<String>> RESULTS = new ConcurrentHashMap<>();
    static final int CASES_A_JOB = 40;
    static final int SECONDS_A_JOB = 60;

    // --- events ---

    public static class Event {
        public String key;
        public String type;
        public long timestamp;
        public int value;

        public Event() {}
    }

    public static class RowEvent extends Event {
        public RowEvent() {}
    }

    static Event event(JsonNode entry) {
        Event event = Character.isUpperCase(entry.get(1).asText().charAt(0)) ? new RowEvent() : new Event();
        event.key = entry.get(0).asText();
        event.type = entry.get(1).asText();
        event.timestamp = entry.get(2).asLong();
        event.value = entry.get(3).asInt();
        return event;
    }

    static ArrayNode shown(Event event) {
        return JSON.createArrayNode().add(event.key).add(event.type).add(event.timestamp).add(event.value);
    }

    static final TypeInformation<Event> EVENT = TypeInformation.of(Event.class);

    /** A case's events and watermarks. */
    public static class Source implements SourceFunction<Event> {
        final String entries;

        Source(JsonNode entries) {
            this.entries = entries.toString();
        }

        @Override
        public void run(SourceContext<Event> context) throws Exception {
            for (JsonNode entry : JSON.readTree(entries)) {
                if (entry.isObject()) {
                    context.emitWatermark(new Watermark(entry.get("wm").asLong()));
                } else {
                    context.collectWithTimestamp(event(entry), entry.get(2).asLong());
                }
            }
        }

        @Override
        public void cancel() {}
    }

    // --- conditions ---

    public static class Condition extends IterativeCondition {
        final String text;
        transient JsonNode expression;

        Condition(JsonNode expression) {
            this.text = expression.toString();
        }

        @Override
        public boolean filter(Object value, Context context) throws Exception {
            if (expression == null) {
                expression = JSON.readTree(text);
            }
            return holds(expression, (Event) value, context);
        }
    }

    static boolean holds(JsonNode expression, Event event, IterativeCondition.Context context) throws Exception {
        String what = expression.get(0).asText();
        switch (what) {
            case "type":
                for (int i = 1; i < expression.size(); i++) {
                    if (expression.get(i).asText().equals(event.type)) {
                        return true;
                    }
                }
                return false;
            case "and":
                for (int i = 1; i < expression.size(); i++) {
                    if (!holds(expression.get(i), event, context)) {
                        return false;
                    }
                }
                return true;
            case "or":
                for (int i = 1; i < expression.size(); i++) {
                    if (holds(expression.get(i), event, context)) {
                        return true;
                    }
                }
                return false;
            case "not":
                return !holds(expression.get(1), event, context);
            case "true":
                return true;
            case "false":
                return false;
            case "raise":
                throw new RuntimeException("the condition was told to fail");
            default:
                return compares(expression, event, context);
        }
    }

    static boolean compares(JsonNode expression, Event event, IterativeCondition.Context context) throws Exception {
        Long left = term(expression.get(1), event, context);
        Long right = term(expression.get(2), event, context);
        if (left == null || right == null) {
            return false;
        }
        int order = Long.compare(left, right);
        switch (expression.get(0).asText()) {
            case "<":
                return order < 0;
            case "<=":
                return order <= 0;
            case ">":
                return order > 0;
            case ">=":
                return order >= 0;
            case "==":
                return order == 0;
            default:
                return order != 0;
        }
    }

    static Long term(JsonNode expression, Event event, IterativeCondition.Context context) throws Exception {
        if (expression.isNumber()) {
            return expression.asLong();
        }
        if (expression.isTextual()) {
            return expression.asText().equals("value") ? event.value : (Long) context.timestamp();
        }
        String what = expression.get(0).asText();
        if (what.equals("+") || what.equals("-") || what.equals("%")) {
            Long left = term(expression.get(1), event, context);
            Long right = term(expression.get(2), event, context);
            if (left == null || right == null) {
                return null;
            }
            return what.equals("+") ? left + right : what.equals("-") ? left - right : Math.floorMod(left, right);
        }
        List<Long> values = new ArrayList<>();
        for (Object matched : context.getEventsForPattern(expression.get(1).asText())) {
            values.add((long) ((Event) matched).value);
        }
        return aggregate(what, values);
    }

    static Long aggregate(String what, List<Long> values) {
        if (what.equals("count")) {
            return (long) values.size();
        }
        if (what.equals("sum")) {
            return values.stream().mapToLong(Long::longValue).sum();
        }
        if (values.isEmpty()) {
            return null;
        }
        switch (what) {
            case "first":
                return values.get(0);
            case "last":
                return values.get(values.size() - 1);
            case "min":
                return Collections.min(values);
            default:
                return Collections.max(values);
        }
    }

    public static class ByFields implements EventComparator<Event> {
        final List<String> fields = new ArrayList<>();

        ByFields(JsonNode fields) {
            fields.forEach(field -> this.fields.add(field.asText()));
        }

        @Override
        public int compare(Event first, Event second) {
            for (String field : fields) {
                int order =
                        field.endsWith("type")
                                ? first.type.compareTo(second.type)
                                : Integer.compare(first.value, second.value);
                if (order != 0) {
                    return field.startsWith("-") ? -order : order;
                }
            }
            return 0;
        }
    }

    // --- patterns ---

    static Pattern pattern(JsonNode steps, AfterMatchSkipStrategy skip) {
        Pattern pattern = null;
        for (JsonNode step : steps) {
            pattern = element(pattern, step.get(0).asText(), step.get(1), skip);
            for (int i = 2; i < step.size(); i++) {
                pattern = applied(pattern, step.get(i));
            }
        }
        return pattern;
    }

    static Pattern element(Pattern before, String how, JsonNode what, AfterMatchSkipStrategy skip) {
        if (what.isObject()) {
            Pattern group = pattern(what.get("group"), null);
            switch (how) {
                case "begin":
                    return skip == null ? Pattern.begin(group) : Pattern.begin(group, skip);
                case "next":
                    return before.next(group);
                case "followed_by":
                    return before.followedBy(group);
                default:
                    return before.followedByAny(group);
            }
        }
        String name = what.asText();
        switch (how) {
            case "begin":
                return skip == null ? Pattern.begin(name) : Pattern.begin(name, skip);
            case "next":
                return before.next(name);
            case "followed_by":
                return before.followedBy(name);
            case "followed_by_any":
                return before.followedByAny(name);
            case "not_next":
                return before.notNext(name);
            default:
                return before.notFollowedBy(name);
        }
    }

    static Pattern applied(Pattern pattern, JsonNode call) {
        int size = call.size();
        JsonNode last = call.get(size - 1);
        Duration window = last.isObject() ? Duration.ofMillis(last.get("window").asLong()) : null;
        switch (call.get(0).asText()) {
            case "where":
                return pattern.where(new Condition(call.get(1)));
            case "or_":
                return pattern.or(new Condition(call.get(1)));
            case "until":
                return pattern.until(new Condition(call.get(1)));
            case "subtype":
                return pattern.subtype(RowEvent.class);
            case "optional":
                return pattern.optional();
            case "greedy":
                return pattern.greedy();
            case "consecutive":
                return pattern.consecutive();
            case "allow_combinations":
                return pattern.allowCombinations();
            case "one_or_more":
                return window == null ? pattern.oneOrMore() : pattern.oneOrMore(window);
            case "times_or_more":
                int least = call.get(1).asInt();
                return window == null ? pattern.timesOrMore(least) : pattern.timesOrMore(least, window);
            case "times":
                int from = call.get(1).asInt();
                if (size - (window == null ? 0 : 1) == 2) {
                    return window == null ? pattern.times(from) : pattern.times(from, window);
                }
                int to = call.get(2).asInt();
                return window == null ? pattern.times(from, to) : pattern.times(from, to, window);
            case "within":
                Duration limit = Duration.ofMillis(call.get(1).asLong());
                return size == 2
                        ? pattern.within(limit)
                        : pattern.within(limit, WithinType.valueOf(call.get(2).asText()));
            default:
                throw new IllegalStateException("unknown call " + call);
        }
    }

    static AfterMatchSkipStrategy skip(JsonNode skip) {
        if (skip == null) {
            return null;
        }
        switch (skip.get(0).asText()) {
            case "no_skip":
                return AfterMatchSkipStrategy.noSkip();
            case "skip_to_next":
                return AfterMatchSkipStrategy.skipToNext();
            case "skip_past_last_event":
                return AfterMatchSkipStrategy.skipPastLastEvent();
            case "skip_to_first":
                SkipToFirstStrategy first = AfterMatchSkipStrategy.skipToFirst(skip.get(1).asText());
                return skip.size() > 2 ? first.throwExceptionOnMiss() : first;
            default:
                SkipToLastStrategy last = AfterMatchSkipStrategy.skipToLast(skip.get(1).asText());
                return skip.size() > 2 ? last.throwExceptionOnMiss() : last;
        }
    }

    // --- results ---

    static final OutputTag<String> TIMEOUTS = new OutputTag<>("timeouts", Types.STRING);
    static final OutputTag<Event> LATE = new OutputTag<>("late", EVENT);

    static String result(String kind, Map<String, List<Event>> match, Long timestamp) {
        ObjectNode events = JSON.createObjectNode();
        match.forEach((name, list) -> {
            ArrayNode array = events.putArray(name);
            list.forEach(event -> array.add(shown(event)));
        });
        ObjectNode result = JSON.createObjectNode();
        result.set(kind, events);
        if (timestamp != null) {
            result.put("ts", timestamp);
        }
        return result.toString();
    }

    public static class Matches extends PatternProcessFunction<Event, String> {
        final boolean timed;

        Matches(boolean timed) {
            this.timed = timed;
        }

        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<String> out) {
            out.collect(result("match", match, timed ? (Long) context.timestamp() : null));
        }
    }

    public static class MatchesAndTimeouts extends Matches implements TimedOutPartialMatchHandler<Event> {
        MatchesAndTimeouts(boolean timed) {
            super(timed);
        }

        @Override
        public void processTimedOutMatch(Map<String, List<Event>> match, Context context) {
            context.output(TIMEOUTS, result("timeout", match, timed ? (Long) context.timestamp() : null));
        }
    }

    static SingleOutputStreamOperator<String> results(PatternStream<Event> found, JsonNode entry, boolean timed) {
        String output = entry.path("output").asText("process");
        boolean timeouts = entry.path("timeouts").asBoolean();
        if (output.equals("process")) {
            return found.process(timeouts ? new MatchesAndTimeouts(timed) : new Matches(timed), Types.STRING);
        }
        if (output.equals("select")) {
            PatternSelectFunction<Event, String> select = match -> result("match", match, null);
            PatternTimeoutFunction<Event, String> timeout =
                    (match, time) -> result("timeout", match, timed ? (Long) time : null);
            return timeouts
                    ? found.select(TIMEOUTS, timeout, Types.STRING, select)
                    : found.select(select, Types.STRING);
        }
        PatternFlatSelectFunction<Event, String> select = (match, out) -> {
            out.collect(result("match", match, null));
            out.collect(result("again", match, null));
        };
        PatternFlatTimeoutFunction<Event, String> timeout =
                (match, time, out) -> out.collect(result("timeout", match, timed ? (Long) time : null));
        return timeouts
                ? found.flatSelect(TIMEOUTS, timeout, Types.STRING, select)
                : found.flatSelect(select, Types.STRING);
    }

    public static class Sink implements SinkFunction<String> {
        final String name;

        Sink(String name) {
            this.name = name;
        }

        @Override
        public void invoke(String value, Context context) {
            RESULTS.get(name).add(value);
        }
    }

    static void build(StreamExecutionEnvironment env, JsonNode entry) {
        boolean timed = entry.path("mode").asText("event_time").equals("event_time");
        Pattern pattern = pattern(entry.get("pattern"), skip(entry.get("skip")));
        DataStream<Event> events = env.addSource(new Source(entry.get("events")), EVENT);
        events = entry.path("keyed").asBoolean(true) ? events.keyBy(event -> event.key) : events;
        PatternStream<Event> found =
                entry.has("comparator")
                        ? CEP.pattern(events, pattern, new ByFields(entry.get("comparator")))
                        : CEP.pattern(events, pattern);
        found = timed ? found.inEventTime() : found.inProcessingTime();
        found = entry.path("late").asBoolean() ? found.sideOutputLateData(LATE) : found;
        SingleOutputStreamOperator<String> results = results(found, entry, timed);
        Sink sink = new Sink(entry.get("name").asText());
        results.addSink(sink);
        if (entry.path("timeouts").asBoolean()) {
            results.getSideOutput(TIMEOUTS).addSink(sink);
        }
        if (entry.path("late").asBoolean()) {
            results.getSideOutput(LATE)
                    .map(event -> JSON.createObjectNode().<ObjectNode>set("late", shown(event)).toString())
                    .addSink(sink);
        }
    }

    // --- runs ---

    static StreamExecutionEnvironment environment() {
        Configuration configuration = new Configuration();
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "none");
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
        env.disableOperatorChaining();
        return env;
    }

    static JsonNode error(Throwable error, String when) {
        Throwable cause = error;
        while (when.equals("run") && cause.getCause() != null) {
            cause = cause.getCause();
        }
        String text = String.valueOf(cause.getMessage());
        return JSON.createObjectNode()
                .put("error", cause.getClass().getSimpleName())
                .put("when", when)
                .put("message", text.substring(0, Math.min(300, text.length())));
    }

    /** Run cases in one job; if it fails, each half for itself. */
    static void run(List<JsonNode> cases, Map<String, JsonNode> recorded) throws Exception {
        StreamExecutionEnvironment env = environment();
        for (JsonNode entry : cases) {
            RESULTS.put(entry.get("name").asText(), Collections.synchronizedList(new ArrayList<>()));
            build(env, entry);
        }
        JobClient client = env.executeAsync();
        try {
            client.getJobExecutionResult().get(SECONDS_A_JOB, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException error) {
            if (error instanceof TimeoutException) {
                client.cancel();
            }
            if (cases.size() == 1) {
                recorded.put(cases.get(0).get("name").asText(), error(error, "run"));
                return;
            }
            run(cases.subList(0, cases.size() / 2), recorded);
            run(cases.subList(cases.size() / 2, cases.size()), recorded);
            return;
        }
        for (JsonNode entry : cases) {
            String name = entry.get("name").asText();
            ArrayNode results = JSON.createArrayNode();
            for (String result : RESULTS.get(name)) {
                results.add(JSON.readTree(result));
            }
            recorded.put(name, results);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, JsonNode> recorded = new LinkedHashMap<>();
        List<JsonNode> runnable = new ArrayList<>();
        for (JsonNode entry : JSON.readTree(new File(arguments[0]))) {
            try {
                build(environment(), entry);
                runnable.add(entry);
            } catch (RuntimeException error) {
                recorded.put(entry.get("name").asText(), error(error, "build"));
            }
        }
        for (int start = 0; start < runnable.size(); start += CASES_A_JOB) {
            run(runnable.subList(start, Math.min(runnable.size(), start + CASES_A_JOB)), recorded);
            System.err.println(Math.min(runnable.size(), start + CASES_A_JOB) + " of " + runnable.size() + " cases");
            JSON.writeValue(new File(arguments[1]), recorded);
        }
        JSON.writeValue(new File(arguments[1]), recorded);
        System.exit(0);
    }
}
