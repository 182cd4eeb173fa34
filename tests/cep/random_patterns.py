"""Random cases in the JSON language of `check.py`: patterns that FlinkCEP and Penstock are compared on."""

import random

TYPES = "abcd"
HOW = ["followed_by"] * 5 + ["next"] * 3 + ["followed_by_any"] * 2
SKIPS = ["no_skip", "skip_to_next", "skip_past_last_event", "skip_to_first", "skip_to_last"]
AGGREGATES = ["count", "sum", "first", "last", "min", "max"]
ODD = [["optional"], ["greedy"], ["consecutive"], ["allow_combinations"], ["one_or_more"], ["times", 2], ["times", 0]]
ODD += [["times", 2, 1], ["until", ["type", "d"]], ["where", ["type", "a"]], ["or_", ["type", "b"]], ["subtype"]]
COMPARISONS = ["<", "<=", ">", ">=", "==", "!="]


class Generator:
    """Cases from a seed. Left out is what Flink itself does not survive: see `is_safe`."""

    def __init__(self, seed):
        self.seed = seed
        self.random = random.Random(seed)

    def cases(self, count):
        found, number = [], 0
        while len(found) < count:
            case = self.case(f"fresh_{self.seed}_{number}")
            number += 1
            if is_safe(case["pattern"]):
                found.append(case)
        return found

    def chance(self, percent):
        return self.random.random() * 100 < percent

    def case(self, name):
        self.names, self.gap = [], self.random.choice([1000, 1500, 300])
        timed = not self.chance(4)
        case = {"name": name, "pattern": self.steps("p", 0, timed), "events": self.events(timed)}
        if self.chance(50):
            case["skip"] = self.skip(case["pattern"])
        if self.chance(45):
            case["output"] = self.random.choice(["select", "flat_select"])
        for flag, percent in (("timeouts", 50), ("late", 40)):
            if timed and self.chance(percent):
                case[flag] = True
        if timed and self.chance(15):
            case["comparator"] = self.random.choice([["type"], ["-type"], ["value"], ["-value"], ["type", "-value"]])
        if self.chance(6):
            case["keyed"] = False
        if not timed:
            case["mode"] = "processing_time"
        case["style"] = self.random.choice(["lambda", "class", "rich"])
        return case

    # --- events ---
    def events(self, timed):
        keys = self.random.choice(["k", "k", "xy", "xyz"])
        types = self.random.choice(["ab", "abc", "abc", "abcd", "abA"])
        length = self.random.randint(3, 9 + 5 * len(keys)) if self.chance(90) else self.random.randint(20, 40)
        disorder, ties, marks = self.chance(25), self.random.choice([0, 0, 60]), self.random.choice([0, 15, 50, 100])
        lag = self.random.choice([0, 0, 500, 1500])
        entries, time, highest = [], 1000, 0
        for _ in range(length):
            stamp = max(1, time - self.random.randint(0, 6000)) if disorder and self.chance(30) else time
            entries.append([self.random.choice(keys), self.random.choice(types), stamp, self.random.randint(0, 9)])
            highest = max(highest, stamp)
            if timed and self.chance(marks) and highest > lag:
                entries.append({"wm": highest - lag})
            if not self.chance(ties):
                time += self.random.randint(1, 25) * self.gap // 10
        return entries

    # --- patterns ---
    def steps(self, prefix, depth, timed):
        count = self.random.choice([1, 2, 2, 2, 3, 3, 4, 5] if depth == 0 else [1, 2, 2, 2, 3])
        steps = []
        for number in range(count):
            last = number == count - 1
            steps.append(self.step(f"{prefix}{number}", steps, depth, timed, last))
        return steps

    def step(self, name, before, depth, timed, last):
        how = self.random.choice(HOW) if before else "begin"
        if before and self.chance(14):
            return self.negated(name, timed, last and depth == 0)
        if depth < 2 and self.chance(18 if depth == 0 else 8):
            calls = self.quantifier(timed, group=True)
            calls = calls + self.limits(timed, last and depth == 0)
            return [how, {"group": self.steps(f"{name}g", depth + 1, timed)}, *self.wild(calls)]
        self.names.append(name)
        calls = self.conditions(name)
        quantifier = self.quantifier(timed)
        calls = quantifier + calls if self.chance(10) else calls + quantifier
        return [how, name, *self.wild(calls + self.limits(timed, last and depth == 0))]

    def wild(self, calls):
        """Now and then, calls in an order or a number that Flink may refuse."""
        if self.chance(4):
            self.random.shuffle(calls)
        if self.chance(2):
            calls.insert(self.random.randint(0, len(calls)), self.random.choice(ODD))
        return calls

    def negated(self, name, timed, last):
        how = "not_followed_by" if self.chance(65) else "not_next"
        calls = [["where", self.condition(name)]]
        if timed and last and self.chance(90):
            calls.append(["within", self.span(3, 12)])
        if timed and self.chance(15):
            calls.append(["within", self.span(1, 4), "PREVIOUS_AND_CURRENT"])
        return [how, f"n{name}", *self.wild(calls)]

    def conditions(self, name):
        calls = []
        if self.chance(90):
            calls.append(["where", self.condition(name)])
        if self.chance(10):
            calls.append(["where", self.condition(name)])
        if self.chance(8):
            calls.append(["or_", self.condition(name)])
        if self.chance(3):
            calls.append(["subtype"])
        return calls

    def condition(self, name):
        kinds = self.random.sample("abc" if self.chance(80) else "abcd", self.random.choice([1, 1, 1, 2]))
        base = ["type", *sorted(kinds)]
        roll = self.random.random()
        if roll < 0.55:
            return base
        if roll < 0.75:
            return ["and", base, self.comparison("value", self.random.randint(1, 8))]
        if roll < 0.80:
            return self.comparison("value", self.random.randint(2, 7))
        if roll < 0.84:
            return ["not", base]
        other = self.random.choice([*self.names, name])
        looked = self.comparison(self.term(), [self.random.choice(AGGREGATES), other])
        if roll < 0.93:
            return ["and", base, ["or", ["==", ["count", other], 0], looked]]
        if roll < 0.94:
            return ["and", base, self.comparison(["%", "timestamp", 1000], 500)]
        if roll < 0.945:
            return ["or", base, ["raise"]]
        if roll < 0.97:
            return ["and", base, ["<", ["+", ["sum", other], "value"], self.random.randint(6, 25)]]
        return ["or", ["and", base, looked], ["==", ["%", "value", 4], 1]]

    def comparison(self, left, right):
        return [self.random.choice(COMPARISONS), left, right]

    def term(self):
        return "value" if self.chance(70) else [self.random.choice("+-"), "value", self.random.randint(0, 3)]

    def quantifier(self, timed, group=False):
        calls, roll = [], self.random.random()
        if roll < 0.5:
            return [["optional"]] if self.chance(20) else []
        window = [{"window": self.span(0.5, 4)}] if timed and self.chance(5 if group else 15) else []
        if roll < 0.68:
            calls.append(["one_or_more", *window])
        elif roll < 0.78:
            calls.append(["times_or_more", self.random.randint(1, 3), *window])
        elif roll < 0.88:
            calls.append(["times", self.random.randint(1, 3), *window])
        else:
            least = self.random.randint(0, 2)
            calls.append(["times", least, least + self.random.randint(1, 2), *window])
        if self.chance(40):
            calls.append([self.random.choice(["consecutive", "allow_combinations"])])
        if self.chance(30) and calls[0][1:2] != [0]:
            calls.append(["optional"])
        if self.chance(25) and not group and ["allow_combinations"] not in calls:
            calls.append(["greedy"])
        if calls[0][0] in ("one_or_more", "times_or_more") and self.chance(25):
            calls.append(["until", self.condition("none")])
        return calls

    def limits(self, timed, last):
        calls = []
        if timed and self.chance(45 if last else 8):
            calls.append(["within", self.span(2, 12)])
        if timed and self.chance(8):
            calls.append(["within", self.span(0.5, 3), "PREVIOUS_AND_CURRENT"])
        return calls

    def span(self, least, most):
        return max(1, int(self.random.uniform(least, most) * self.gap))

    def skip(self, steps):
        name = self.random.choice(SKIPS)
        if name not in ("skip_to_first", "skip_to_last"):
            return [name]
        names = [what for _, what, *_ in steps if isinstance(what, str)] or ["nowhere"]
        target = self.random.choice(names) if self.chance(96) else "nowhere"
        return [name, target, "throw_exception_on_miss"] if self.chance(25) else [name, target]


# --- what Flink does not survive ---


def is_safe(steps):
    """Flink never returns from a loop of groups in which everything is optional, and may fail with a null pointer on
    such a group at the start."""
    return not any(isinstance(what, dict) and not _safe_group(what["group"]) for _, what, *_ in steps)


def _safe_group(steps):
    return is_safe(steps) and not all(_may_be_missing(step) for step in steps)


def _may_be_missing(step):
    how, what, *calls = step
    return (
        how.startswith("not_")
        or ["optional"] in calls
        or any(call[:2] == ["times", 0] for call in calls)
        or (isinstance(what, dict) and all(_may_be_missing(each) for each in what["group"]))
    )
