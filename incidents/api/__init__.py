"""The REST API of incidents and the gate. A view translates, makes one call, and translates back."""
