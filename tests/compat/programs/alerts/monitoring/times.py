from pyflink.common.watermark_strategy import TimestampAssigner


class SecondsOf(TimestampAssigner):
    """A field that has seconds with a fraction."""

    def __init__(self, field):
        self.field = field

    def extract_timestamp(self, value, record_timestamp):
        return value[self.field] * 1000
