CREATE TABLE maker_flights (
  flight_date STRING,
  manufacturer STRING,
  flights BIGINT,
  arrivals BIGINT,
  delay_minutes BIGINT
)
