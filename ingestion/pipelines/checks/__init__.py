"""What an operator and the lake allow, asked before a pipeline is registered, and before it runs."""
