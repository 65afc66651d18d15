SELECT
  left(e.flight_date, 7) AS month,
  e.carrier,
  count(*) AS days,
  sum(e.flights) AS flights,
  sum(e.earnings) AS earnings
FROM <SRC> e
GROUP BY left(e.flight_date, 7), e.carrier
