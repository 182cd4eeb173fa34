def sentence(key, change):
    # Imported where it is used, as many programs do to keep their modules light.
    from pyflink.common import Row

    return f"{key} changed: {Row(by=change)}"
