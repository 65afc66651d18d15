CREATE TABLE carrier_months (
  month STRING,
  carrier STRING,
  days BIGINT,
  flights BIGINT,
  earnings DECIMAL(16, 2)
)
