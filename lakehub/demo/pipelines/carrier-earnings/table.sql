CREATE TABLE carrier_earnings (
  flight_date STRING,
  carrier STRING,
  airline STRING,
  flights BIGINT,
  cancelled BIGINT,
  miles BIGINT,
  earnings DECIMAL(14, 2)
)
