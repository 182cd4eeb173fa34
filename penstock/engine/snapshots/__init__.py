"""A slot's side of checkpoints: gathering, writing and restoring what its operators hold."""
