"""Windows and joins at the limit for Python: the same user functions, plain dicts, and times that never go back."""

from collections import defaultdict, deque

import workloads as w


def run(job, slot):
    """The results of the keys of one process, whose numbers are those that a subtask of a source would read."""
    if job.workload == w.INTERVAL_JOIN:
        share = w.side_of(job) // w.PARALLELISM
        return interval_join(job, range(slot * share, (slot + 1) * share))
    share = job.records // w.PARALLELISM
    loop = sessions if job.workload == w.SESSIONS else fixed_windows
    return loop(job, range(slot * share, (slot + 1) * share))


def fixed_windows(job, numbers):
    """Tumbling and sliding windows: a dict of accumulators by key for every window that is open."""
    event_of, key_of, time_of, mean = w.event_of(job.records, job.keys), w.key_of, w.time_of, w.MeanSteps()
    create, add, get_result = mean.create_accumulator, mean.add, mean.get_result
    size, slide = w.WINDOW_MILLIS, w.slide_of(job)
    windows, due = {}, 0
    for number in numbers:
        event = event_of(number)
        time, key = time_of(event), key_of(event)
        start = time - time % slide
        if time >= due:
            for over in [begin for begin in windows if begin + size <= time]:
                yield from map(get_result, windows.pop(over).values())
            due = start + slide
            windows[start] = {}
            if not start:
                windows |= {begin: {} for begin in range(slide - size, 0, slide)}
        while start > time - size:
            accumulators = windows[start]
            accumulators[key] = add(event, accumulators.get(key) or create())
            start -= slide
    for accumulators in windows.values():
        yield from map(get_result, accumulators.values())


def sessions(job, numbers):
    """By key, the accumulator of its session and when that ends unless an element comes before."""
    event_of, key_of, time_of, mean = w.event_with_pauses(job.records, job.keys), w.key_of, w.time_of, w.MeanSteps()
    create, add, get_result = mean.create_accumulator, mean.add, mean.get_result
    gap, accumulators, ends = w.GAP_MILLIS, {}, {}
    for number in numbers:
        event = event_of(number)
        time, key = time_of(event), key_of(event)
        if time <= ends.get(key, -1):
            accumulators[key] = add(event, accumulators[key])
        else:
            if key in accumulators:
                yield get_result(accumulators[key])
            accumulators[key] = add(event, create())
        ends[key] = time + gap
    yield from map(get_result, accumulators.values())


def interval_join(job, numbers):
    """By side and key, the elements that one of the other side may still meet."""
    side, key_of, time_of = w.side_of(job), w.key_of, w.time_of
    left_of, right_of = w.event_of(side, job.keys), w.event_of(side, job.keys, w.BOUND_MILLIS)
    pair_of, is_kept, bound = w.pair_of, w.is_kept, w.BOUND_MILLIS
    lefts, rights = defaultdict(deque), defaultdict(deque)

    def meeting(others, time):
        while others and time_of(others[0]) < time - bound:
            others.popleft()
        return [other for other in others if time_of(other) <= time + bound]

    for number in numbers:
        left, right = left_of(number), right_of(number)
        key = key_of(left)
        for other in meeting(rights[key], time_of(left)):
            if is_kept(pair := pair_of(left, other)):
                yield pair
        lefts[key].append(left)
        key = key_of(right)
        for other in meeting(lefts[key], time_of(right)):
            if is_kept(pair := pair_of(other, right)):
                yield pair
        rights[key].append(right)
