"""Changes of single columns, deletes and forced updates: how they merge into rows, whatever their order, batches and repetitions."""
