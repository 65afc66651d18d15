"""The schema service: versions of Avro schemas by subject, which may follow which, and the REST API that Confluent's clients speak."""
