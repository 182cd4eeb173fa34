"""A slot's side of checkpoints: gathering, writing and restoring the state of its operators."""
